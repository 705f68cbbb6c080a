"""Memory and CPU of the child that seals a segment, by the length of the segment: `scripts/bench
seal_cost`.

Journals are generated: samples of 40 programs and 60,000 stacks at 97 Hz, in order of time, and the
counters of every core.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

from generated_recording import NS, PROCESSES, PROGRAMS, START_NS, CallTrees, call_trees
from necroscope.model.reading import Rows
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import Identity, make_recording, new_segment_path

HEAD = ["segment", "journal, MB", "peak RSS, MB", "CPU s"]
HZ = 97
_SIZES = ((2, 300), (96, 60), (96, 300))
# The child as the recorder starts it, which tells its own peak at its end: what a parent learns of
# it holds the parent's pages.
_MEASURED = """
import os, resource, runpy, sys
def tell(code):
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
    used = resource.getrusage(resource.RUSAGE_SELF)
    os.write(1, f"{int(peak) * 1024} {used.ru_utime + used.ru_stime}".encode())
    leave(code)
leave, os._exit = os._exit, tell
runpy.run_module("necroscope.segment.seal_child", run_name="__main__", alter_sys=True)
"""


def seal_rows(work: Path) -> Iterator[list[str]]:
    """The middle of three seals of each journal."""
    trees = call_trees(Random(1))
    for cpus, seconds in _SIZES:
        recording = work / f"{cpus}-{seconds}"
        make_recording(recording, Identity("generated", "generated", "benchmarks/seal_cost.py"))
        live = write_journal(recording, trees, cpus, seconds)
        size_mb = (live / "journal").stat().st_size / 1e6
        peak_bytes, cpu_s = sorted(measure(live, work / "copy") for _ in range(3))[1]
        yield [
            f"{cpus} cores, {seconds} s",
            f"{size_mb:.1f}",
            f"{peak_bytes / 1e6:.1f}",
            f"{cpu_s:.2f}",
        ]


def measure(live: Path, copy: Path) -> tuple[int, float]:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(live.parent, copy)
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    command = [sys.executable, "-P", "-c", _MEASURED, str(copy / live.name)]
    peak, cpu = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, check=True
    ).stdout.split()
    return int(peak), float(cpu)


def write_journal(recording: Path, trees: CallTrees, cpus: int, seconds: int) -> Path:
    random = Random(2)
    live = new_segment_path(recording, START_NS)
    writer = JournalWriter(live, SegmentHeader(live.name, "generated", "generated", START_NS, cpus))
    leaves = [ends.tolist() for ends in trees.leaves]
    interned = {
        name: [tuple(row.values()) for row in rows.to_pylist()] for name, rows in _interned(trees)
    }
    known = dict.fromkeys(interned, 0)
    for second in range(seconds):
        for name, rows in interned.items():
            # Half of the stacks that are still unknown turn up within thirty seconds.
            count = int(len(rows) * (1 - 0.5 ** ((second + 1) / 30)))
            writer.append(name, rows[known[name] : count])
            known[name] = count
        writer.append("samples", samples(random, leaves, START_NS + second * NS, cpus))
        for name, rows in counters(random, START_NS + (second + 1) * NS, cpus).items():
            writer.append(name, rows)
        if second % 3 == 2:
            writer.flush()
    writer.close()
    return live


def _interned(trees: CallTrees) -> tuple[tuple[str, object], ...]:
    return ("frames", trees.frames), ("stacks", trees.stacks)


def samples(random: Random, leaves: list[list[int]], start_ns: int, cpus: int) -> Rows:
    rows: Rows = []
    for cpu in range(cpus):
        for tick in range(HZ):
            if tick % 10 == 0:
                process = int(PROCESSES * random.random() ** 2)
            ends, pid = leaves[process % PROGRAMS], 1000 + process * 16
            time_ns = start_ns + tick * NS // HZ + cpu * 1000 + random.randrange(20_000)
            name, cgroup = (
                f"program-{process % PROGRAMS}",
                f"/kubepods/burstable/pod{process % 60}/container{process}",
            )
            stack = ends[int(len(ends) * random.random() ** 3)]
            rows.append((time_ns, cpu, pid, pid + random.randrange(8), name, cgroup, stack, 1))
    return sorted(rows)


def counters(random: Random, now_ns: int, cpus: int) -> dict[str, Rows]:
    tick_ns, number = NS // 100, random.randrange
    cores = range(cpus)
    return {
        "cores": [
            (now_ns, cpu, NS + number(10**6), *(number(50) * tick_ns for _ in range(9)))
            for cpu in cores
        ],
        "softirqs": [
            (now_ns, cpu, NS + number(10**6), *(number(3000) for _ in range(10))) for cpu in cores
        ],
        "softnet": [
            (now_ns, cpu, NS + number(10**6), number(9999), 0, 0, 0, 0, 0) for cpu in cores
        ],
        "runqueue": [
            (now_ns, cpu, 20 + cpu, f"ksoftirqd/{cpu}", "S", NS, number(10**7), number(10**6), 9)
            for cpu in cores
        ],
        "softirq_delay": [
            (now_ns, cpu, vector, number(1000), number(10**6), 0, [number(100) for _ in range(24)])
            for cpu in cores
            for vector in ("timer", "net_rx", "sched", "rcu")
        ],
        "pressure": [(now_ns, resource, NS, 0, 0) for resource in ("cpu", "memory", "io", "irq")],
    }


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="necroscope-seal-") as work:
        for row in (HEAD, ["---"] * len(HEAD), *seal_rows(Path(work))):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
