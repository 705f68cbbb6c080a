"""Hundreds of packet sockets listen on one device, and each packet is given to all of them.

What it does: a monitoring agent opens a packet socket for each of its rules and leaves them open
when it restarts its plugins. A modest stream of packets comes in on one core: the kernel gives a
copy of each to every socket before anything else is done with it, all in softirqs.

Seen in the wild: DHCP clients, LLDP daemons and sniffers that leak AF_PACKET sockets;
net/core/dev.c (`deliver_skb` over ptype_all), net/packet/af_packet.c.

What must be seen: the core nearly full of softirq with few packets, in `packet_rcv` below the
receive path; packet sockets in numbers; the agent.
"""

import contextlib
import resource
import socket
import time
from typing import ClassVar

from necroscope.lab.handler_hold import HandlerHold
from necroscope.lab.stage import Stage

_ALL_PROTOCOLS = 3


def tap(device: str, sockets: int) -> None:
    """What they do not read is dropped at their buffers."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (sockets + 64, sockets + 64))
    with contextlib.ExitStack() as open_sockets:
        for _ in range(sockets):
            each = open_sockets.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.bind((device, _ALL_PROTOCOLS))
        while True:
            time.sleep(1)


class PacketTaps(HandlerHold):
    name = "packet-taps"
    twin = "packet-taps-few"
    handlers = ("packet_rcv", "__netif_receive_skb_core", "dev_queue_xmit_nit", "skb_clone")
    packets_per_s = 14_000
    sockets: ClassVar[int] = 1_500

    def start_owner(self, stage: Stage) -> str:
        count = round(self.sockets * stage.random.uniform(0.9, 1.1))
        arguments = (self.network.far_device, count)
        return stage.start(tap, *arguments, comm=stage.invent("agent"), netns=self.network.far).comm
