"""An agent asks the kernel as hard as in `semaphore-walk`, and there are few semaphore sets.

What it does: the agent reads /proc/sysvipc/sem while there are few sets, again and again for nine
tenths of a second, with a short pause. The core is as busy in the kernel as in the incident, and
each call is short.

Seen in the wild: agents that ask a small question too often (ipc/util.c).

What must be seen: a busy core and nothing that is named: there is nothing large to walk.
"""

from necroscope.lab.incidents.semaphore_walk import SemaphoreWalk
from necroscope.lab.state_walk import FewObjects


class FewSemaphores(FewObjects, SemaphoreWalk):
    name = "semaphore-walk-few"
    twin = "semaphore-walk"
