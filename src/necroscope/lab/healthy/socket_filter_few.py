"""The packets of `socket-filter` arrive, and one socket has a short filter.

What it does: a capture agent has one socket with a filter of ten instructions. As many packets come
in on the same core; each takes some microseconds.

Seen in the wild: tcpdump of one host.

What must be seen: nothing wrong: the core has time for every packet.
"""

from necroscope.lab.handler_hold import LittleToPass
from necroscope.lab.incidents.socket_filter import SocketFilter


class FewSocketFilter(LittleToPass, SocketFilter):
    name = "socket-filter-few"
    twin = "socket-filter"
    sockets, instructions = 1, 10
