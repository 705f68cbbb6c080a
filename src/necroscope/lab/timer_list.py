"""A kernel section of chosen length without a point where the core may switch tasks:
/proc/timer_list with many timers.

`print_active_timers` (kernel/time/timer_list.c) finds each timer of a core by counting from the
first one again, all within one line of the file, and seq_file starts that line again with twice the
buffer until it fits: the time grows with the square of the number of timers. Interrupts and
softirqs run in between; where the kernel does not preempt itself no task does.
"""

import ctypes
import os
import time
from collections.abc import Sequence
from typing import Final

PATH: Final = "/proc/timer_list"
_CLOCK_MONOTONIC: Final = 1
_FAR_AWAY_S: Final = 3600
_READ_BYTES: Final = 1 << 22
_libc: Final = ctypes.CDLL(None, use_errno=True)


def arm(count: int) -> list[int]:
    """Descriptors of timers on the core that this runs on, none of which expires in the lab's
    time.
    """
    descriptors = []
    for i in range(count):
        descriptor = _libc.timerfd_create(_CLOCK_MONOTONIC, os.O_CLOEXEC)
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), "cannot make a timer")
        # struct itimerspec: interval and first expiry, each in seconds and nanoseconds.
        when = (ctypes.c_long * 4)(0, 0, _FAR_AWAY_S + i % 977, i)
        if _libc.timerfd_settime(descriptor, 0, when, None):
            raise OSError(ctypes.get_errno(), "cannot arm a timer")
        descriptors.append(descriptor)
    return descriptors


def hold_timers(count: int) -> None:
    """An application with that many sessions that wait, each with its time-out."""
    arm(count)
    while True:
        time.sleep(1)


def read() -> float:
    """Read it to its end as any agent would; the seconds that its longest system call took."""
    longest_s = 0.0
    descriptor = os.open(PATH, os.O_RDONLY)
    try:
        while True:
            start_s = time.monotonic()
            content = os.read(descriptor, _READ_BYTES)
            longest_s = max(longest_s, time.monotonic() - start_s)
            if not content:
                return longest_s
    finally:
        os.close(descriptor)


def read_again_and_again(pauses_s: Sequence[float]) -> None:
    """As long as it lives."""
    while True:
        for pause_s in pauses_s:
            read()
            time.sleep(pause_s)
