"""One collector under the steady push of many nodes: `scripts/bench fleet push [--seconds 30]`.

Every node is a real HTTP client (`http.client`) with a connection of its own that sends a batch a
minute: the minute summaries of 96 cores, 200 folded stacks, a few events, a pulse. The time from
the first byte of a request to its answer counts. Beside it `/healthz` is asked all the time: how
long it waits is how long the event loop was held. At the end the collector is told to end, and
every batch that was acknowledged must be in the lake once. With `--hostile` one more node lies.
"""

import argparse
import contextlib
import http.client
import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hostile_node import TOKENS, HostileNode
from necroscope.fleet.lake import Lake
from necroscope.fleet.protocol import BATCHES_PATH, Batch, encode
from necroscope.fleet.table_files import distinct
from necroscope.fleet.tokens import Grant, entry_text

NS = 1_000_000_000
MIB = 1 << 20
CPUS = 96
STACKS = 200
TOKEN = "necro_benchmark"
SENDERS = 48
SHARES = [
    "user",
    "system",
    "irq",
    "softirq",
    "steal",
    "idle",
    "worst_busy",
    "worst_system",
    "worst_softirq",
    "worst_steal",
]
SERVE = [sys.executable, "-m", "necroscope", "fleet", "serve"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument(
        "--every", type=float, default=60, help="seconds between two batches of a node"
    )
    parser.add_argument("--lake", help="instead of a directory that is removed after it")
    parser.add_argument("--hostile", action="store_true", help="with a node whose token was stolen")
    parser.add_argument("--json", action="store_true")


class Node:
    """Its stacks stay much the same from minute to minute, as a real node's do."""

    def __init__(self, number: int, port: int) -> None:
        self.name = f"node-{number:04d}"
        self._random = random.Random(number)
        functions = [f"function_{self._random.randrange(5000)}" for _ in range(400)]
        depths = (self._random.randrange(6, 40) for _ in range(STACKS + 60))
        self._paths = [";".join(self._random.choices(functions, k=depth)) for depth in depths]
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.batches = 0

    def batch(self) -> Batch:
        pick, time_ns = self._random, time.time_ns()
        minute_ns = time_ns - time_ns % (60 * NS) + self.batches
        shares = {name: [round(pick.random(), 4) for _ in range(CPUS)] for name in SHARES}
        delays = [pick.randrange(10**7) for _ in range(CPUS)]
        cores = {
            "time": [minute_ns] * CPUS,
            "cpu": list(range(CPUS)),
            "ticks": [60] * CPUS,
            **shares,
            "worst_delay_ns": delays,
        }
        stacks = {
            "time": [minute_ns] * STACKS,
            "comm": [f"worker-{number % 24}" for number in range(STACKS)],
            "cgroup": [f"/kubepods.slice/pod{number % 24}" for number in range(STACKS)],
            "path": pick.sample(self._paths, STACKS),
            "samples": [pick.randrange(1, 500) for _ in range(STACKS)],
            "period_ns": [10_309_278] * STACKS,
        }
        events = {
            "time": [time_ns + number for number in range(3)],
            "boot_id": ["boot"] * 3,
            "source_sequence": [3 * self.batches + number for number in range(3)],
            "kind": ["unit_restart"] * 3,
            "message": [f"unit {pick.randrange(50)} was started again"] * 3,
        }
        pulses = {
            "time": [time_ns],
            "cpus": [CPUS],
            "span_from": [minute_ns],
            "span_to": [minute_ns + 60 * NS],
        }
        tables: dict[str, Any] = {
            "core_minutes": cores,
            "stack_minutes": stacks,
            "events": events,
            "pulses": pulses,
        }
        self.batches += 1
        return Batch(
            self.name,
            "boot",
            f"boot-{self.batches}",
            time_ns,
            {"zone": f"z{len(self.name) % 3}"},
            tables,
        )


@dataclass
class Measurements:
    latencies_s: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    health_s: list[float] = field(default_factory=list)
    resident_mib: list[tuple[float, float]] = field(default_factory=list)
    sent_bytes: int = 0
    mean_ms: dict[str, float] = field(default_factory=dict)


def push(node: Node, measured: Measurements) -> None:
    body = encode(node.batch())
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Encoding": "gzip"}
    began_s = time.perf_counter()
    try:
        node.connection.request("POST", BATCHES_PATH, body, headers)
        response = node.connection.getresponse()
        response.read()
        status = str(response.status)
    except (OSError, http.client.HTTPException) as error:
        node.connection.close()
        status = type(error).__name__
    measured.latencies_s.append(time.perf_counter() - began_s)
    measured.statuses[status] += 1
    measured.sent_bytes += len(body)


def send_all(due: "queue.Queue[Node | None]", measured: Measurements) -> None:
    while (node := due.get()) is not None:
        push(node, measured)


def ask_health(
    port: int, pid: int, began_s: float, measured: Measurements, done: threading.Event
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    page_bytes, printed_s = os.sysconf("SC_PAGE_SIZE"), -1e9
    while not done.wait(0.1):
        asked_s = time.perf_counter()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        now_s = time.perf_counter()
        measured.health_s.append(now_s - asked_s)
        if now_s - printed_s >= 5:
            printed_s = now_s
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            measured.resident_mib.append((now_s - began_s, pages * page_bytes / MIB))
    connection.request("GET", "/metrics")
    found = re.findall(
        r"_(commit|compaction)_seconds_(sum|count) (\S+)", connection.getresponse().read().decode()
    )
    spent = {(what, part): float(value) for what, part, value in found}
    for what in ("commit", "compaction"):
        measured.mean_ms[what] = round(
            1000 * spent[what, "sum"] / max(1.0, spent[what, "count"]), 1
        )
    connection.close()


def start(lake: str, scratch: Path) -> tuple["subprocess.Popen[str]", int]:
    tokens = scratch / "tokens.toml"
    tokens.write_text(entry_text(TOKEN, Grant("bench", "push")) + TOKENS, "utf-8")
    words = [*SERVE, "--lake", lake, "--tokens", str(tokens), "--port", "0", "--node-rate", "1000"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())
    assert found is not None
    return process, int(found[1])


def drive(
    process: "subprocess.Popen[str]", port: int, arguments: argparse.Namespace
) -> Measurements:
    """Every node in its own second of the minute, so that they come evenly; a sender that is late
    sends at once.
    """
    measured, done = Measurements(), threading.Event()
    due: queue.Queue[Node | None] = queue.Queue()
    nodes = [Node(number, port) for number in range(arguments.nodes)]
    senders = [threading.Thread(target=send_all, args=(due, measured)) for _ in range(SENDERS)]
    began_s = time.perf_counter()
    watch = threading.Thread(target=ask_health, args=(port, process.pid, began_s, measured, done))
    for thread in (watch, *senders):
        thread.start()
    count = 0
    while (at_s := count * arguments.every / arguments.nodes) < arguments.seconds:
        time.sleep(max(0.0, began_s + at_s - time.perf_counter()))
        due.put(nodes[count % arguments.nodes])
        count += 1
        if sys.stderr.isatty() and count % 200 == 0:
            print(f"\r{at_s:5.0f} s  {count} batches", end="", file=sys.stderr)
    for _ in senders:
        due.put(None)
    for thread in senders:
        thread.join()
    done.set()
    watch.join()
    return measured


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def summary(measured: Measurements, used_s: float, elapsed_s: float, lake: Lake) -> dict[str, Any]:
    latencies, health = np.array(measured.latencies_s) * 1000, np.array(measured.health_s) * 1000
    files = lake.list("tables")
    pulses = distinct("pulses", lake.dataset("pulses").to_table()).num_rows
    return {
        "batches": len(latencies),
        "batches_per_s": round(len(latencies) / elapsed_s, 1),
        "statuses": dict(measured.statuses),
        "acknowledge_ms": {
            name: round(float(np.percentile(latencies, at)), 1)
            for name, at in percentiles().items()
        },
        "health_ms": {
            name: round(float(np.percentile(health, at)), 1) for name, at in percentiles().items()
        },
        "mean_ms_in_collector": measured.mean_ms,
        "resident_mib_by_minute": by_minute(measured.resident_mib),
        "core_share": round(used_s / elapsed_s, 3),
        "mean_body_bytes": measured.sent_bytes // max(1, len(latencies)),
        "lake": {"files": len(files), "bytes": sum(len(lake.read(path)) for path in files)},
        "acknowledged": measured.statuses["200"],
        "in_lake_once": pulses,
    }


def by_minute(samples: list[tuple[float, float]]) -> list[str]:
    """Lowest and highest: what merging takes for a moment is in the highest, what leaks is in the
    lowest.
    """
    minutes: dict[int, list[float]] = {}
    for at_s, mib in samples:
        minutes.setdefault(int(at_s // 60), []).append(mib)
    return [f"{min(found):.0f}-{max(found):.0f}" for _, found in sorted(minutes.items())]


def percentiles() -> dict[str, float]:
    return {"p50": 50, "p95": 95, "p99": 99, "worst": 100}


def run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        url = arguments.lake or str(Path(scratch) / "lake")
        process, port = start(url, Path(scratch))
        before_s, began_s = cpu_s(process.pid), time.perf_counter()
        liar = HostileNode(port)
        try:
            with liar if arguments.hostile else contextlib.nullcontext():
                measured = drive(process, port, arguments)
            elapsed_s, used_s = time.perf_counter() - began_s, cpu_s(process.pid) - before_s
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=120)
        found = summary(measured, used_s, elapsed_s, Lake.open(url))
        found |= {"hostile": dict(liar.statuses)} if arguments.hostile else {}
    print(json.dumps(found) if arguments.json else describe(found))
    assert found["acknowledged"] == found["in_lake_once"], (
        "an acknowledged batch is missing, or there twice"
    )


def describe(found: dict[str, Any]) -> str:
    lines = [f"{name:24} {value}" for name, value in found.items()]
    return "\n".join(lines)
