"""The clock of kernel log lines, read without writing to the log.

printk stamps lines with the scheduler's clock, which no system call reads and which drifts from
CLOCK_MONOTONIC over weeks. A perf event without a clock id stamps its records with the same clock:
we rename ourselves to our own name and read the time of the COMM record.
"""

import ctypes
import os
import struct
import time
from typing import Final

from necroscope.errors import NecroscopeError
from necroscope.model.clocks import ClockReading
from necroscope.perf_abi import event_attr as abi
from necroscope.perf_abi import records
from necroscope.sources.perf.event import enable, open_event
from necroscope.sources.perf.ring import Ring

_PR_SET_NAME: Final = 15
_PR_GET_NAME: Final = 16
_TIME_FROM_END: Final = 8
_QUICK_NS: Final = 1_000_000
_MORE_TRIES: Final = 4
_libc: Final = ctypes.CDLL(None, use_errno=True)


class LogClock:
    """Reads all clocks at one instant; without the perf event the log's clock stays None."""

    def __init__(self) -> None:
        self._ring: Ring | None = None
        # Without the kernel's part any user may open it.
        flags = abi.FLAG_DISABLED | abi.FLAG_COMM | abi.FLAG_SAMPLE_ID_ALL | abi.FLAG_EXCLUDE_KERNEL
        attr = abi.EventAttr(abi.TYPE_SOFTWARE, abi.SW_DUMMY, abi.SAMPLE_TIME, flags)
        try:
            descriptor = open_event(attr, pid=0)
        except (OSError, NecroscopeError):
            return
        try:
            self._ring = Ring(descriptor, 1)
        except OSError:
            os.close(descriptor)
            return
        try:
            enable(descriptor)
        except OSError:
            self.close()

    def read(self) -> ClockReading:
        """The clocks side by side. A pause between two of them would look like a stepped clock: the
        quickest of a few tries.
        """
        quickest_ns, reading = self._try_to_read()
        for _ in range(_MORE_TRIES):
            if quickest_ns < _QUICK_NS:
                break
            took_ns, again = self._try_to_read()
            if took_ns < quickest_ns:
                quickest_ns, reading = took_ns, again
        return reading

    def close(self) -> None:
        if self._ring is not None:
            self._ring.close()
            self._ring = None

    def _try_to_read(self) -> tuple[int, ClockReading]:
        before_ns = time.monotonic_ns()
        log_clock_ns = self._read_log_clock()
        monotonic_ns = time.monotonic_ns()
        realtime_ns = time.time_ns()
        boottime_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        took_ns = time.monotonic_ns() - before_ns
        if log_clock_ns is not None:
            log_clock_ns += (monotonic_ns - before_ns) // 2
        return took_ns, ClockReading(realtime_ns, monotonic_ns, boottime_ns, log_clock_ns)

    def _read_log_clock(self) -> int | None:
        if self._ring is None:
            return None
        name = ctypes.create_string_buffer(16)
        _libc.prctl(_PR_GET_NAME, name, 0, 0, 0)
        _libc.prctl(_PR_SET_NAME, name, 0, 0, 0)
        data = self._ring.drain()
        if len(data) < records.HEADER.size + _TIME_FROM_END:
            return None
        return int(struct.unpack_from("<Q", data, len(data) - _TIME_FROM_END)[0])
