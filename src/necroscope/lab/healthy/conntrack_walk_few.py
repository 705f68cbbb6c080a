"""An agent asks the kernel as hard as in `conntrack-walk`, and there are few tracked connections.

What it does: the agent reads /proc/net/nf_conntrack while few connections are tracked, again and
again for nine tenths of a second, with a short pause. The core is as busy in the kernel as in the
incident, and each call is short.

Seen in the wild: agents that ask a small question too often
(net/netfilter/nf_conntrack_standalone.c).

What must be seen: a busy core and nothing that is named: there is nothing large to walk.
"""

from necroscope.lab.incidents.conntrack_walk import ConntrackWalk
from necroscope.lab.state_walk import FewObjects


class FewConnections(FewObjects, ConntrackWalk):
    name = "conntrack-walk-few"
    twin = "conntrack-walk"
