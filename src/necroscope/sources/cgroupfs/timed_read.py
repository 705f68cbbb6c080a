"""How long does a read of a cgroup's statistics take? Asked with care: on old kernels the question
is itself the incident.

On 5.4 a root `memory.numa_stat` over 68,000 dead cgroups holds its core for about 5 s, which is
what resets network cards. So it is read from the smallest cgroup first, then from its ancestors;
each read is in a process of its own that is pinned to a core without network interrupts, and the
next larger one is asked for only if this one was quick. That bounds the root not at all, below
which all the dead are: it is read only where a core is free of network interrupts, and where that
number of cgroups, each as expensive as those that were read, would be quick. Nothing else helps: a
walk that has begun is not ended by a time limit, nor by a signal. (mm/memcontrol-v1.c,
memcg_numa_stat_show.)
"""

import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.units import NS_PER_MS, NS_PER_S, format_duration
from necroscope.sources.cgroupfs.hierarchies import Hierarchy, read
from necroscope.sources.cgroupfs.walk import walk

FILES: Final = ("memory.stat", "memory.numa_stat")
# A read that took longer is an answer already: its parent's would take longer still.
QUICK_NS: Final = 20 * NS_PER_MS
TIME_LIMIT_S: Final = 2.0
# Of the walk that took 5 s over 68,000: what is taken for the price of a cgroup where none could be
# measured.
_DEAR_NS: Final = 73_000


@dataclass(frozen=True, slots=True)
class TimedRead:
    """`duration_ns` is None if the read had not ended after the time limit; `is_root` if all
    cgroups were below it.
    """

    path: str
    duration_ns: int | None
    is_root: bool


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The reads in order; `left_out` says why the root was not read, and is empty if it was or a
    smaller one was slow.
    """

    reads: Sequence[TimedRead]
    left_out: str = ""


def probe(
    root: Path, cpus: Collection[int], avoid: Collection[int], held: int | None
) -> ProbeResult:
    """From a leaf to the root, until one is slow or the root would be.

    `avoid` are the cores that take network interrupts, `held` the memory cgroups that the kernel
    holds, dead ones included.
    """
    hierarchy = _of_memory(root)
    if not cpus:
        raise SourceUnavailable("no core is known to read from", "see the notices about /proc/stat")
    free = set(cpus) - set(avoid)
    reads: list[TimedRead] = []
    price_ns: dict[str, float] = {}
    for directory in _upwards(hierarchy.mount_point):
        is_root = directory == hierarchy.mount_point
        below = len(walk(directory, time.monotonic_ns).paths)
        for name in FILES:
            path = directory + b"/" + name.encode()
            if not os.path.exists(path):
                continue
            if is_root and (why := _danger(bool(free), held, price_ns.get(name, _DEAR_NS))):
                return ProbeResult(reads, why)
            reads.append(_time_read(path, max(free or cpus), is_root=is_root))
            took_ns = reads[-1].duration_ns
            if took_ns is None or took_ns > QUICK_NS:
                return ProbeResult(reads)
            price_ns[name] = min(took_ns / below, price_ns.get(name, took_ns))
    return ProbeResult(reads)


def _danger(has_free_core: bool, held: int | None, price_ns: float) -> str:
    """Why a read of the root could starve a core; empty if it could not."""
    if not has_free_core:
        return "every core takes network interrupts, and would be held for as long as it takes"
    if held is None:
        return "how many dead cgroups there are is not known"
    if held * price_ns > QUICK_NS:
        return (
            f"over the {held:,} cgroups that are held it may take"
            f" {format_duration(round(held * price_ns))}"
        )
    return ""


def _of_memory(root: Path) -> Hierarchy:
    hierarchies = read(root)
    found = [item for item in hierarchies if "memory" in item.controllers] or [
        item for item in hierarchies if item.version == 2
    ]
    if not found:
        raise SourceUnavailable(
            "no hierarchy with the memory controller is mounted", "mount /sys/fs/cgroup"
        )
    return found[0]


def _upwards(mount_point: bytes) -> Iterator[bytes]:
    """A leaf near the root, its ancestors, the root."""
    chain = [mount_point]
    while len(chain) < 4:
        with os.scandir(chain[-1]) as entries:
            below = next(
                (entry.path for entry in entries if entry.is_dir(follow_symlinks=False)), None
            )
        if below is None:
            break
        chain.append(below)
    return reversed(chain)


def _time_read(path: bytes, core: int, *, is_root: bool) -> TimedRead:
    arguments = [
        sys.executable,
        "-P",
        "-m",
        "necroscope.sources.cgroupfs.timed_read",
        os.fsdecode(path),
        str(core),
    ]
    child = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", process_group=0
    )
    try:
        answer, _ = child.communicate(timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        child.kill()  # it dies when the walk is over, and is not waited for
        return TimedRead(os.fsdecode(path), None, is_root)
    if child.returncode or not answer:
        facts = (
            f"the process that read {os.fsdecode(path)} ended with {child.returncode} and no answer"
        )
        raise SourceUnavailable(facts, "the cgroup may be gone: ask again")
    return TimedRead(os.fsdecode(path), int(answer), is_root)


def _main(path: str, core: str) -> None:
    os.sched_setaffinity(0, {int(core)})
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    started_ns = time.perf_counter_ns()
    while os.read(descriptor, 1 << 20):
        if time.perf_counter_ns() - started_ns > TIME_LIMIT_S * NS_PER_S:
            break
    sys.stdout.write(str(time.perf_counter_ns() - started_ns))


if __name__ == "__main__":
    _main(*sys.argv[1:])
