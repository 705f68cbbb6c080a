"""An agent asks the kernel as hard as in `mapping-walk`, and there are few mappings.

What it does: the agent reads /proc/PID/smaps of a program with few mappings, again and again for
nine tenths of a second, with a short pause. The core is as busy in the kernel as in the incident,
and each call is short.

Seen in the wild: agents that ask a small question too often (fs/proc/task_mmu.c).

What must be seen: a busy core and nothing that is named: there is nothing large to walk.
"""

from necroscope.lab.incidents.mapping_walk import MappingWalk
from necroscope.lab.state_walk import FewObjects


class FewMappings(FewObjects, MappingWalk):
    name = "mapping-walk-few"
    twin = "mapping-walk"
