"""A filter of a thousand instructions is run on each packet, for each socket that has it.

What it does: a capture agent compiles a long expression (addresses of a block list) to a classic
BPF program and attaches it to many sockets. Broadcasts come in on one core: the kernel runs the
whole program for each socket and packet, in softirqs, before the packet is dropped.

Seen in the wild: tcpdump expressions of hundreds of hosts, DHCP relays, Suricata and Zeek with
generated filters; net/core/filter.c.

What must be seen: the core nearly full of softirq with few packets, below `sk_filter_trim_cap` (or
`packet_rcv`), in code that has no name of its own; the agent.
"""

import ctypes
import socket
import struct
import time
from typing import ClassVar

from necroscope.lab.handler_hold import HandlerHold
from necroscope.lab.stage import Stage

_ATTACH_FILTER = 26
_ALL_PROTOCOLS = 3
_LOAD_BYTE, _JUMP_EQUAL, _RETURN = 0x30, 0x15, 0x06


def _program(instructions: int) -> bytes:
    """Loads a byte and compares it, again and again; then drops the packet."""
    step = struct.pack("<HBBI", _LOAD_BYTE, 0, 0, 20) + struct.pack("<HBBI", _JUMP_EQUAL, 0, 0, 999)
    return step * (instructions // 2) + struct.pack("<HBBI", _RETURN, 0, 0, 0)


def filter_all(device: str, sockets: int, instructions: int) -> None:
    code = ctypes.create_string_buffer(_program(instructions))
    count = (len(code) - 1) // 8
    order = struct.pack("<HxxxxxxQ", count, ctypes.addressof(code))
    kept = []
    for _ in range(sockets):
        each = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        each.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, order)
        each.bind((device, _ALL_PROTOCOLS))
        kept.append(each)
    while True:
        time.sleep(1)


class SocketFilter(HandlerHold):
    name = "socket-filter"
    twin = "socket-filter-few"
    tolerates = ("ebpf-overhead",)
    handlers = ("packet_rcv", "run_filter", "sk_filter_trim_cap", "__netif_receive_skb_core")
    packets_per_s = 15_000
    sockets: ClassVar[int] = 120
    instructions: ClassVar[int] = 1_000

    def start_owner(self, stage: Stage) -> str:
        arguments = (self.network.far_device, self.sockets, self.instructions)
        return stage.start(
            filter_all, *arguments, comm=stage.invent("agent"), netns=self.network.far
        ).comm
