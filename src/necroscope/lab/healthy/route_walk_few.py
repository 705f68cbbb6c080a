"""An agent asks the kernel as hard as in `route-walk`, and there are few routes.

What it does: the agent reads /proc/net/route while there are few routes, again and again for
nine tenths of a second, with a short pause. The core is as busy in the kernel as in the incident,
and each read is short.

Seen in the wild: agents that poll a small table too often (net/ipv4/fib_trie.c).

What must be seen: a busy core and nothing that is named: there is nothing large to walk.
"""

from necroscope.lab.incidents.route_walk import RouteWalk
from necroscope.lab.state_walk import FewObjects


class FewRoutes(FewObjects, RouteWalk):
    name = "route-walk-few"
    twin = "route-walk"
