"""An agent lists the POSIX timers of a program that keeps one for each session.

What it does: a server makes a timer with timer_create(2) for each connection and forgets to delete
it. An agent reads its /proc/PID/timers every moment, as checkpoint tools do. The kernel walks the
list of timers; each page of text begins with a search from the first.

Seen in the wild: CRIU's dump of programs with many timers; leaks of timer_create in telephony
servers (Asterisk, FreeSWITCH); fs/proc/base.c, kernel/time/posix-timers.c.

What must be seen: one core in system mode in `show_timer` and `timers_start` below a read; POSIX
timers (slab cache posix_timers_cache) that grow; the server that makes them. The twin reads the
timers of a program with few as hard.
"""

import ctypes

from necroscope.lab.actor import Actor
from necroscope.lab.stage import Stage
from necroscope.lab.state_walk import StateWalk, growing

_CLOCK_MONOTONIC = 1
_SIGEV_NONE = 1
_libc = ctypes.CDLL(None, use_errno=True)


def make_timers(first: int, more_per_s: float, directory: str) -> None:
    # struct sigevent: value, signal number, how to notify.
    event = (ctypes.c_int * 16)(0, 0, 0, _SIGEV_NONE)
    timer = ctypes.c_void_p()
    for _ in growing(first, more_per_s, directory):
        if _libc.timer_create(_CLOCK_MONOTONIC, event, ctypes.byref(timer)):
            raise OSError(ctypes.get_errno(), "cannot make a timer")


class TimerWalk(StateWalk):
    name = "timer-walk"
    twin = "timer-walk-few"
    population = ("slab:posix_timers_cache",)
    first, more_per_s = 36_000, 1_800

    def start_maker(self, stage: Stage, first: int, more_per_s: int) -> Actor:
        return stage.start(
            make_timers, first, more_per_s, str(stage.scratch), cpu=stage.other_cores
        )

    def start_walker(self, stage: Stage) -> Actor:
        return self.start_reader(stage, f"/proc/{self.maker.pid}/timers")
