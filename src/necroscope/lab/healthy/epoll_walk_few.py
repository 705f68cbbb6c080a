"""An agent asks the kernel as hard as in `epoll-walk`, and there are few epoll items.

What it does: the agent reads the fdinfo of a small epoll set, again and again for nine tenths of a
second, with a short pause. The core is as busy in the kernel as in the incident, and each call is
short.

Seen in the wild: agents that ask a small question too often (fs/eventpoll.c).

What must be seen: a busy core and nothing that is named: there is nothing large to walk.
"""

from necroscope.lab.incidents.epoll_walk import EpollWalk
from necroscope.lab.state_walk import FewObjects


class FewEpollItems(FewObjects, EpollWalk):
    name = "epoll-walk-few"
    twin = "epoll-walk"
