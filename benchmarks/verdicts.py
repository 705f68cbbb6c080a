"""What verdicts cost a node and how soon they arrive: `python benchmarks/verdicts.py [MINUTES]
[TREE]`, with metrics, notify and push running.

Kept recordings of real incidents are recorded again, one after the other, in real time. Measured
are all processes beside the recorder itself: the one that judges, `metrics` (scraped every 15 s),
`notify` with a webhook, and `fleet push --follow`. TREE is another checkout with its own .venv, to
compare with: one from before the ledger has no process that judges, its outlets do.
"""

import gzip
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path

from measured_child import MeasuredChild
from necroscope.model.units import parse_moment_ns
from necroscope.segment.lock import RecordingLock
from replayed_recording import NS, KeptRecording, ReplayedRecording

LAB = Path(__file__).parents[1] / "tests" / "data" / "lab"
PIECES = (
    "zombie-memcg-walk",
    "idle",
    "cpu-quota-throttle",
    "rt-hog",
    "blocked-io",
    "compile",
    "userspace-hog",
    "softirq-storm",
)
HEAD = ["verdicts", "measured", "bar"]
FLUSH_S = 3
SCRAPE_S = 15
# Until what is late has arrived.
LINGER_S = 60
WARM_UP_S = 30


class Arrivals:
    """When the webhook and the collector first heard of an incident that overlaps a stretch."""

    def __init__(self) -> None:
        self.heard: dict[str, list[tuple[int, int, int]]] = {"webhook": [], "collector": []}
        self._lock = threading.Lock()

    def note(self, path: str, body: bytes) -> None:
        now_ns = time.time_ns()
        with self._lock:
            if path.startswith("/hook"):
                one = json.loads(body)["incident"]
                self.heard["webhook"].append((now_ns, _ns(one["from"]), _ns(one["to"])))
            else:
                with suppress(ValueError, KeyError, OSError):
                    rows = json.loads(gzip.decompress(body))["tables"]["incidents"]
                    spans = zip(rows["time"], rows["end"], strict=True)
                    self.heard["collector"] += [(now_ns, *span) for span in spans]

    def first_ns(self, by: str, from_ns: int, to_ns: int) -> int | None:
        times = [at for at, start, end in self.heard[by] if start < to_ns and from_ns < end]
        return min(times, default=None)


def _ns(moment: str) -> int:
    return parse_moment_ns(moment, 0)


@contextmanager
def _receiver(arrivals: Arrivals) -> Iterator[str]:
    class Taker(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # as http.server names it
            arrivals.note(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_PUT = do_POST  # noqa: N815 - as http.server names it

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taker)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def _children(directory: Path, url: str, port: int) -> dict[str, MeasuredChild]:
    program = [sys.executable, "-P", "-m", "necroscope"]
    recording = str(directory)
    commands = {
        "metrics": [*program, "metrics", recording, "--listen", f"127.0.0.1:{port}"],
        "notify": [*program, "notify", recording, "--webhook", f"{url}/hook"],
        "push": [*program, "fleet", "push", recording, "--to", url, "--follow"],
    }
    return {
        name: MeasuredChild(command, directory.parent / f"{name}.log")
        for name, command in commands.items()
    }


def _keeper(directory: Path) -> subprocess.Popen[bytes] | None:
    """Its standard input is what ends it, so it is measured by its own /proc/PID/stat."""
    if find_spec("necroscope.verdicts") is None:
        return None
    command = [sys.executable, "-P", "-m", "necroscope.verdicts.keeper", str(directory)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _scrape(port: int) -> None:
    with suppress(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20).read()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _replay(recording: ReplayedRecording, minutes: float, port: int) -> list[tuple[int, int]]:
    """In real time; returns the stretches of the incidents that were written."""
    kept = {
        name: KeptRecording(next((LAB / name).rglob("recording.json")).parent) for name in PIECES
    }
    ends_ns = time.time_ns() + round(minutes * 60 * NS)
    truth: list[tuple[int, int]] = []
    scraped_s = time.monotonic()
    for name in cycle(PIECES):
        start_ns, piece = time.time_ns(), kept[name]
        recording.begin(piece, start_ns)
        truth += [
            (start_ns + round(one.from_s * NS), start_ns + round(one.to_s * NS))
            for one in piece.truth
        ]
        while time.time_ns() < start_ns + round(piece.seconds * NS) + FLUSH_S * NS:
            time.sleep(FLUSH_S)
            recording.grow(time.time_ns())
            if time.monotonic() - scraped_s >= SCRAPE_S:
                scraped_s = time.monotonic()
                _scrape(port)
        if time.time_ns() >= ends_ns:
            return truth
    raise AssertionError("unreachable: the pieces go round")


def _latency(arrivals: Arrivals, truth: list[tuple[int, int]], by: str) -> list[list[str]]:
    heard = [(arrivals.first_ns(by, *span), span) for span in truth]
    starts = [(at_ns - span[0]) / NS for at_ns, span in heard if at_ns is not None]
    ends = [(at_ns - span[1]) / NS for at_ns, span in heard if at_ns is not None]
    return [
        [f"incidents that reached the {by}", f"{len(starts)} of {len(truth)}", f"{len(truth)}"],
        [f"start to {by}, s, largest", f"{max(starts, default=0):.1f}", "30, or 15 after its end"],
        [f"end to {by}, s, largest", f"{max(ends, default=0):.1f}", "15"],
    ]


def measure(minutes: float) -> list[list[str]]:
    arrivals = Arrivals()
    with (
        tempfile.TemporaryDirectory() as place,
        _receiver(arrivals) as url,
    ):
        recording = ReplayedRecording(Path(place) / "recording")
        port = _free_port()
        with RecordingLock(recording.directory):
            keeper = _keeper(recording.directory)
            children = _children(recording.directory, url, port)
            pids = {name: child.pid for name, child in children.items()}
            pids |= {"the process that judges": keeper.pid} if keeper is not None else {}
            begun: dict[str, float] = {}
            # Their start is left out: they live for weeks.
            threading.Timer(
                WARM_UP_S, lambda: begun.update({name: _cpu_s(pids[name]) for name in pids})
            ).start()
            truth = _replay(recording, minutes, port)
            time.sleep(LINGER_S)
            ended = {name: _cpu_s(pid) for name, pid in pids.items()}
            for child in children.values():
                child.finish()
            if keeper is not None and keeper.stdin is not None:
                keeper.stdin.close()
                keeper.wait(60)
            recording.end()
    per_minute = 60 / (minutes * 60 + LINGER_S - WARM_UP_S)
    costs = {name: (ended[name] - begun[name]) * per_minute for name in pids}
    rows = [[f"CPU s per minute, {name}", f"{cost:.3f}", ""] for name, cost in costs.items()]
    whole = sum(costs.values())
    rows.append(["CPU s per minute, all together", f"{whole:.3f}", "half of before the ledger"])
    for by in ("webhook", "collector"):
        rows += _latency(arrivals, truth, by)
    return rows


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 8.0
    if len(sys.argv) > 2:
        tree = Path(sys.argv[2]).absolute()
        python = str(tree / ".venv" / "bin" / "python")
        environment = os.environ | {"PYTHONPATH": str(tree / "src")}
        os.execve(python, [python, __file__, str(minutes)], environment)
    for row in [HEAD, *measure(minutes)]:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
