"""The lab's own measurement: reads the kernel's files ten times per second in a thread that nothing
it measures can starve.
"""

import contextlib
import os
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

from necroscope.lab.measured import Reading
from necroscope.lab.stage import Stage

PERIOD_S: Final = 0.1
ALWAYS: Final = (
    "/proc/stat",
    "/proc/softirqs",
    "/proc/interrupts",
    "/proc/net/softnet_stat",
    "/proc/vmstat",
    "/proc/cgroups",
    "/proc/meminfo",
)


class Meter:
    """Started and stopped once; what it read is kept as text, by path."""

    def __init__(self, stage: Stage) -> None:
        self.readings: dict[str, list[Reading]] = defaultdict(list)
        self._stage = stage
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._measure, name="meter", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _measure(self) -> None:
        # Of this thread alone: away from the chosen core, and ahead of everything else.
        os.sched_setaffinity(0, self._stage.other_cores)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(70))
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = max(due + PERIOD_S, time.monotonic())
            for path in (*ALWAYS, *self._stage.watched):
                # A file goes with what it belongs to: a task, a cgroup.
                with contextlib.suppress(OSError):
                    self.readings[path].append((time.time_ns(), _read(path)))


def _read(path: str) -> str:
    """Devices have a line for each of their interrupts, hundreds on a large machine: only those of
    the cores are kept.
    """
    text = Path(path).read_text(errors="replace")
    if path != "/proc/interrupts":
        return text
    return "".join(
        line for line in text.splitlines(keepends=True) if not line.lstrip()[:1].isdigit()
    )
