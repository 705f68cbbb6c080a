"""An agent asks the kernel as hard as in `key-walk`, and there are few keys.

What it does: the agent reads /proc/keys while there are few keys, again and again for
nine tenths of a second, with a short pause. The core is as busy in the kernel as in the incident,
and each read is short.

Seen in the wild: agents that poll a small table too often (security/keys/proc.c).

What must be seen: a busy core and nothing that is named: there is nothing large to walk.
"""

from necroscope.lab.incidents.key_walk import KeyWalk
from necroscope.lab.state_walk import FewObjects


class FewKeys(FewObjects, KeyWalk):
    name = "key-walk-few"
    twin = "key-walk"
