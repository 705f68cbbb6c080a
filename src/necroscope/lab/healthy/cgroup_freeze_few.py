"""An agent asks the kernel as hard as in `cgroup-freeze`, and there are few cgroups.

What it does: the agent freezes and thaws a cgroup that has few below it, again and again for
nine tenths of a second, with a short pause. The core is as busy in the kernel as in the incident,
and each turn is short.

Seen in the wild: agents that poll a small table too often (kernel/cgroup/freezer.c).

What must be seen: a busy core and nothing that is named: there is nothing large to walk.
"""

from necroscope.lab.incidents.cgroup_freeze import CgroupFreeze
from necroscope.lab.state_walk import FewObjects


class FewCgroupFreeze(FewObjects, CgroupFreeze):
    name = "cgroup-freeze-few"
    twin = "cgroup-freeze"
