"""The clock of kernel log lines, read without writing to the log.

printk stamps lines with the scheduler's clock, which no system call reads and which drifts from
CLOCK_MONOTONIC over weeks. A perf event without a clock id stamps its records with the same clock:
we rename ourselves to our own name and read the time of the COMM record.

The event is one of a core and not of our task, and there for that moment only: while any task has
an event, the kernel calls perf at every context switch of the whole machine.
"""

import ctypes
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from necroscope.errors import NecroscopeError
from necroscope.model.clocks import ClockReading
from necroscope.perf_abi import event_attr as abi
from necroscope.perf_abi import records
from necroscope.sources.perf.event import EVERY_CPU, EVERY_PROCESS, open_event
from necroscope.sources.perf.ring import Ring

_PR_SET_NAME: Final = 15
_PR_GET_NAME: Final = 16
_TIME_FROM_END: Final = 8
_QUICK_NS: Final = 1_000_000
_MORE_TRIES: Final = 4
_OURSELVES: Final = 0
# Without the kernel's part any user may open it for a task of its own.
_ATTR: Final = abi.EventAttr(
    abi.TYPE_SOFTWARE,
    abi.SW_DUMMY,
    abi.SAMPLE_TIME,
    abi.FLAG_COMM | abi.FLAG_SAMPLE_ID_ALL | abi.FLAG_EXCLUDE_KERNEL,
)
_libc: Final = ctypes.CDLL(None, use_errno=True)


class LogClock:
    """Reads all clocks at one instant; without the perf event the log's clock stays None."""

    def read(self, *, with_log_clock: bool = True) -> ClockReading:
        """The clocks side by side. A pause between two of them would look like a stepped clock: the
        quickest of a few tries.
        """
        best = _try_to_read(with_log_clock=with_log_clock)
        for _ in range(_MORE_TRIES):
            if not best.was_moved and best.took_ns < _QUICK_NS:
                break
            again = _try_to_read(with_log_clock=with_log_clock)
            best = min(best, again, key=lambda one: (one.was_moved, one.took_ns))
        return best.reading


class _Try(NamedTuple):
    """`was_moved`: to another core before we were renamed, so that no record came."""

    reading: ClockReading
    took_ns: int
    was_moved: bool


def _try_to_read(*, with_log_clock: bool) -> _Try:
    if not with_log_clock:
        return _Try(*_read_clocks(None), was_moved=False)
    with _own_ring() as ring:
        reading, took_ns = _read_clocks(ring)
    return _Try(reading, took_ns, ring is not None and reading.log_clock_ns is None)


def _read_clocks(ring: Ring | None) -> tuple[ClockReading, int]:
    before_ns = time.monotonic_ns()
    log_clock_ns = None if ring is None else _read_log_clock(ring)
    monotonic_ns = time.monotonic_ns()
    realtime_ns = time.time_ns()
    boottime_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    took_ns = time.monotonic_ns() - before_ns
    if log_clock_ns is not None:
        log_clock_ns += (monotonic_ns - before_ns) // 2
    return ClockReading(realtime_ns, monotonic_ns, boottime_ns, log_clock_ns), took_ns


@contextmanager
def _own_ring() -> Iterator[Ring | None]:
    """Of renames on the core that runs us, else of our own; None where perf is refused."""
    ring = _open_ring(EVERY_PROCESS, _libc.sched_getcpu()) or _open_ring(_OURSELVES, EVERY_CPU)
    try:
        yield ring
    finally:
        if ring is not None:
            ring.close()


def _open_ring(pid: int, cpu: int) -> Ring | None:
    try:
        descriptor = open_event(_ATTR, pid, cpu)
    except (OSError, NecroscopeError):
        return None
    try:
        return Ring(descriptor, 1)
    except OSError:
        os.close(descriptor)
        return None


def _read_log_clock(ring: Ring) -> int | None:
    name = ctypes.create_string_buffer(16)
    _libc.prctl(_PR_GET_NAME, name, 0, 0, 0)
    _libc.prctl(_PR_SET_NAME, name, 0, 0, 0)
    data = ring.drain()
    if len(data) < records.HEADER.size + _TIME_FROM_END:
        return None
    return int(struct.unpack_from("<Q", data, len(data) - _TIME_FROM_END)[0])
