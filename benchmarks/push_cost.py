"""What pushing costs a node: `python benchmarks/push_cost.py [CPUS] [MINUTES] [BUSY]`, CPU seconds
a minute and memory.

A journal of that many cores at 97 Hz grows by a minute at a time, flushed every 3 s as a recorder
does, sealed every five; the push process sees a clock that jumps by a minute. So it does what it
does in a minute, and nobody waits for one.
"""

import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import generated_recording as generated
from necroscope.cli.fleet_push import _stay_small
from necroscope.outlets.push.delivery import Delivery
from necroscope.outlets.push.push import Pusher
from necroscope.outlets.push.push_state import PushState
from necroscope.outlets.push.sender import Sender
from necroscope.outlets.push.spool import Spool
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import LIVE, Identity, make_recording, new_segment_path
from necroscope.segment.seal_writer import seal

HEAD = ["pushing", "measured", "bar"]
HZ = 97
FLUSH_S = 3
SEGMENT_S = 300
NS = generated.NS
START_NS = generated.START_NS
VECTORS = ("timer", "net_rx", "sched", "rcu")


class GrowingNode:
    """Writes the journal of a node whose cores all work `busy` of the time."""

    def __init__(self, directory: Path, cpus: int, busy: float) -> None:
        self.directory = directory
        self._cpus = cpus
        self._busy = busy
        self._second = 0
        self._random = Random(1)
        self._trees = generated.call_trees(Random(1))
        self._writer: JournalWriter | None = None
        make_recording(directory, Identity("generated", "generated", "necroscope generated"))

    def grow(self, seconds: int) -> None:
        for _ in range(seconds // FLUSH_S):
            if self._second % SEGMENT_S == 0:
                self._next_segment()
            assert self._writer is not None
            start_ns = START_NS + self._second * NS
            self._writer.append(
                "cores",
                [row for tick in range(FLUSH_S) for row in self._cores(start_ns + (tick + 1) * NS)],
            )
            self._writer.append(
                "softirq_delay",
                [
                    row
                    for tick in range(FLUSH_S)
                    for row in self._delays(start_ns + (tick + 1) * NS)
                ],
            )
            self._writer.append("samples", self._samples(start_ns))
            self._writer.flush()
            self._second += FLUSH_S

    def _next_segment(self) -> None:
        if self._writer is not None:
            self._writer.close()
            seal(self._writer.path.parent)
        start_ns = START_NS + self._second * NS
        path = new_segment_path(self.directory, start_ns)
        self._writer = JournalWriter(
            path,
            SegmentHeader(path.name.removesuffix(LIVE), "generated", "boot", start_ns, self._cpus),
        )
        self._writer.idle_samples = 1
        self._writer.append("frames", _rows(self._trees.frames))
        self._writer.append("stacks", _rows(self._trees.stacks))
        self._writer.append(
            "facts", [(start_ns, "sysctl", f"fact.{number}", "1") for number in range(2000)]
        )
        self._writer.append(
            "events",
            [(start_ns, "unit_restart", *[None] * 6, 4, False, None, "restarted", None, None)],
        )

    def _cores(self, time_ns: int) -> Iterator[tuple[Any, ...]]:
        for cpu in range(self._cpus):
            user = round(self._busy * self._random.random() * 100) * NS // 100
            yield (time_ns, cpu, NS, user, 0, NS // 100, NS - user - NS // 100, 0, 0, 0, 0, 0)

    def _delays(self, time_ns: int) -> Iterator[tuple[Any, ...]]:
        for cpu in range(self._cpus):
            for vector in VECTORS:
                yield (time_ns, cpu, vector, 24, self._random.randrange(400_000), 0, [1] * 12)

    def _samples(self, start_ns: int) -> list[tuple[Any, ...]]:
        whole, generated.SEGMENT_S = generated.SEGMENT_S, FLUSH_S
        rows = generated.samples(self._trees, start_ns, self._cpus, HZ, self._busy, self._second)
        generated.SEGMENT_S = whole
        return _rows(rows)


def _rows(batch: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def push_cost_rows(cpus: int = 96, minutes: int = 12, busy: float = 0.99) -> list[list[str]]:
    """Rows for a table; the first minutes are left out of the CPU, because they load code."""
    with tempfile.TemporaryDirectory() as directory, _collector() as url:
        node = GrowingNode(Path(directory) / "recording", cpus, busy)
        node.grow(69)
        command = [sys.executable, __file__, "--push", str(node.directory), url]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdin is not None
        assert child.stdout is not None
        seen = []
        for _ in range(minutes):
            child.stdin.write("\n")
            child.stdin.flush()
            seen.append(json.loads(child.stdout.readline()))
            node.grow(60)
        child.stdin.close()
        child.wait()
    costs = [later["cpu_s"] - sooner["cpu_s"] for sooner, later in pairwise(seen[1:])]
    sizes = [later["sent_bytes"] - sooner["sent_bytes"] for sooner, later in pairwise(seen[1:])]
    named = f"{cpus} cores, {busy:.0%} busy"
    return [
        [
            f"{named}: CPU s a minute, mean (largest)",
            f"{sum(costs) / len(costs):.3f} ({max(costs):.3f})",
            "0.5",
        ],
        [
            f"{named}: RSS MB, largest (at the end)",
            f"{seen[-1]['peak_mb']:.0f} ({seen[-1]['rss_mb']:.0f})",
            "120",
        ],
        [f"{named}: sent KB a minute", f"{sum(sizes) / len(sizes) / 1e3:.1f}", ""],
    ]


class _Taker(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # as http.server names it
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _collector() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Taker)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def push(directory: Path, url: str) -> None:
    """The process that is measured: a turn for each line, with a clock that jumps by a minute."""
    _stay_small()
    now = [0.0]
    state = PushState(Spool(directory / ".push"), url, print)
    delivery = Delivery(state, Sender(url), print, lambda: now[0])
    pusher = Pusher(directory, state, delivery, "generated", {"zone": "a"}, lambda: now[0])
    for _ in sys.stdin:
        pusher.turn()
        now[0] += 61.0
        used = resource.getrusage(resource.RUSAGE_SELF)
        rss_kb = next(
            int(line.split()[1])
            for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith("VmRSS")
        )
        found = {
            "cpu_s": time.process_time(),
            "rss_mb": rss_kb / 1e3,
            "peak_mb": used.ru_maxrss / 1e3,
        }
        print(json.dumps(found | {"sent_bytes": delivery.delivered.bytes}), flush=True)
    pusher.close()


def main() -> None:
    if sys.argv[1:2] == ["--push"]:
        push(Path(sys.argv[2]), sys.argv[3])
        return
    words = dict(zip(("cpus", "minutes", "busy"), sys.argv[1:], strict=False))
    rows = push_cost_rows(
        int(words.get("cpus", 96)), int(words.get("minutes", 12)), float(words.get("busy", 0.99))
    )
    for row in [HEAD, *rows]:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
