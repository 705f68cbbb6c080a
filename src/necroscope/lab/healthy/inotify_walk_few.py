"""An agent asks the kernel as hard as in `inotify-walk`, and there are few inotify watches.

What it does: the agent reads /proc/PID/fdinfo of a program with few watches, again and again for
nine tenths of a second, with a short pause. The core is as busy in the kernel as in the incident,
and each read is short.

Seen in the wild: agents that poll a small table too often (fs/notify/fdinfo.c).

What must be seen: a busy core and nothing that is named: there is nothing large to walk.
"""

from necroscope.lab.incidents.inotify_walk import InotifyWalk
from necroscope.lab.state_walk import FewObjects


class FewWatches(FewObjects, InotifyWalk):
    name = "inotify-walk-few"
    twin = "inotify-walk"
