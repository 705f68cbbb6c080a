"""The packets of `packet-taps` arrive, and few sockets listen.

What it does: an agent has two packet sockets open on the device. As many packets come in on
the same core; each takes some microseconds.

Seen in the wild: a DHCP client and an LLDP daemon on any server.

What must be seen: nothing wrong: the core has time for every packet.
"""

from necroscope.lab.handler_hold import LittleToPass
from necroscope.lab.incidents.packet_taps import PacketTaps


class FewPacketTaps(LittleToPass, PacketTaps):
    name = "packet-taps-few"
    twin = "packet-taps"
    sockets = 2
