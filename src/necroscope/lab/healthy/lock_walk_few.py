"""An agent asks the kernel as hard as in `lock-walk`, and there are few file locks.

What it does: the agent reads /proc/locks while there are few locks, again and again for
nine tenths of a second, with a short pause. The core is as busy in the kernel as in the incident,
and each turn is short.

Seen in the wild: agents that poll a small table too often (fs/locks.c).

What must be seen: a busy core and nothing that is named: there is nothing large to walk.
"""

from necroscope.lab.incidents.lock_walk import LockWalk
from necroscope.lab.state_walk import FewObjects


class FewLockWalk(FewObjects, LockWalk):
    name = "lock-walk-few"
    twin = "lock-walk"
