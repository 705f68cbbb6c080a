"""An agent asks the kernel as hard as in `neighbour-walk`, and there are few neighbours.

What it does: the agent reads /proc/net/arp while there are few neighbours, again and again for
nine tenths of a second, with a short pause. The core is as busy in the kernel as in the incident,
and each read is short.

Seen in the wild: agents that poll a small table too often (net/core/neighbour.c).

What must be seen: a busy core and nothing that is named: there is nothing large to walk.
"""

from necroscope.lab.incidents.neighbour_walk import NeighbourWalk
from necroscope.lab.state_walk import FewObjects


class FewNeighbours(FewObjects, NeighbourWalk):
    name = "neighbour-walk-few"
    twin = "neighbour-walk"
