"""An agent asks the kernel as hard as in `timer-walk`, and there are few timers.

What it does: the agent reads /proc/PID/timers of a program with few timers, again and again for
nine tenths of a second, with a short pause. The core is as busy in the kernel as in the incident,
and each call is short.

Seen in the wild: agents that ask a small question too often (fs/proc/base.c).

What must be seen: a busy core and nothing that is named: there is nothing large to walk.
"""

from necroscope.lab.incidents.timer_walk import TimerWalk
from necroscope.lab.state_walk import FewObjects


class FewTimers(FewObjects, TimerWalk):
    name = "timer-walk-few"
    twin = "timer-walk"
