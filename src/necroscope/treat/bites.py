"""Work in the kernel done in small bites, so that no core is held for longer than a budget: each is
timed, and the next is made smaller or larger.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from necroscope.model.units import NS_PER_MS
from necroscope.sources.procfs.interrupts import device_and_queue, parse_header, parse_line
from necroscope.sources.sysfs import cpus, netdev_irqs

DEFAULT_HOLD_NS: Final = 50 * NS_PER_MS
_FIRST_PAGES: Final = 64
_MOST_PAGES: Final = 4_096
# Of the budget: below, a bite may grow; above, the next is half as large.
_EASY, _CLOSE = 1 / 16, 1 / 4


@dataclass(slots=True)
class Bites:
    """`hold_ns` is the longest that a core may be held at a time; `longest_ns` the longest that it
    was.
    """

    hold_ns: int = DEFAULT_HOLD_NS
    pages: int = _FIRST_PAGES
    longest_ns: int = 0
    count: int = 0
    clock_ns: Callable[[], int] = time.thread_time_ns
    pause: Callable[[float], None] = time.sleep

    def take(self, work: Callable[..., object], *arguments: object) -> None:
        """After it the core is given to others for as long as the bite took."""
        began_ns = self.clock_ns()
        work(*arguments)
        held_ns = self.clock_ns() - began_ns
        self.count += 1
        self.longest_ns = max(self.longest_ns, held_ns)
        if held_ns < _EASY * self.hold_ns:
            self.pages = min(_MOST_PAGES, self.pages * 2)
        elif held_ns > _CLOSE * self.hold_ns:
            self.pages = max(1, self.pages // 2)
        self.pause(held_ns / 1e9)


def quiet_core(root: Path) -> int | None:
    """A core that this process may run on and that no queue of a network device interrupts; None if
    there is none.
    """
    allowed = os.sched_getaffinity(0)
    free = allowed - network_cores(root)
    return max(free, default=None)


def network_cores(root: Path) -> set[int]:
    """Where the interrupts of the queues of network devices go."""
    return {core for cores in network_irqs(root).values() for core in cores}


def network_irqs(root: Path) -> dict[str, set[int]]:
    """Each interrupt of a queue of a network device, with its cores."""
    devices = netdev_irqs.read(root)
    lines = _lines(root / "proc/interrupts")
    if not lines:
        return {}
    count = len(parse_header(lines[0]))
    found: dict[str, set[int]] = {}
    for line in filter(None, (parse_line(line, count) for line in lines[1:])):
        _device, queue = device_and_queue(line.label, line.action, devices)
        if queue is not None:
            found[line.label] = irq_cores(root, line.label)
    return found


def irq_cores(root: Path, irq: str) -> set[int]:
    for name in ("effective_affinity_list", "smp_affinity_list"):
        lines = _lines(root / "proc/irq" / irq / name)
        if lines and lines[0]:
            return set(cpus.parse(lines[0]))
    return set()


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except OSError:
        return []
