"""An agent reads the ARP table, and a controller has filled it.

What it does: a controller of an overlay network (flannel, a VXLAN without learning) adds a
permanent neighbour for each host of a large cluster. An agent reads /proc/net/arp every moment. The
kernel walks the hash table, from its first bucket again for each page of text, and writes a line
for each.

Seen in the wild: flannel and OpenStack nodes with tens of thousands of permanent neighbours; the
other end of "neighbour table overflow"; net/core/neighbour.c.

What must be seen: one core in system mode in `neigh_seq_next`, `neigh_get_idx` and `arp_seq_show`
below a read; neighbours that grow; the controller that adds them.
The twin reads the same file as hard while there are few.
"""

import socket

from necroscope.lab import netlink
from necroscope.lab.actor import Actor
from necroscope.lab.stage import Stage
from necroscope.lab.state_walk import StateWalk, growing


def add_neighbours(device: str, first: int, more_per_s: float, directory: str) -> None:
    index = socket.if_nametoindex(device)

    def message(number: int) -> tuple[int, bytes]:
        address, hardware = 0x0A000000 + number, 0x020000000000 + number
        return netlink.neighbour(address.to_bytes(4, "big"), hardware.to_bytes(6, "big"), index)

    netlink.make_all(growing(first, more_per_s, directory), message)


class NeighbourWalk(StateWalk):
    name = "neighbour-walk"
    twin = "neighbour-walk-few"
    population = ("neighbours",)
    first, more_per_s = 40_000, 2_000
    needs = ("ip", "/proc/net/arp")

    def start_maker(self, stage: Stage, first: int, more_per_s: int) -> Actor:
        self.network = stage.make_network(gap_s=None)
        arguments = (self.network.far_device, first, more_per_s, str(stage.scratch))
        return stage.start(
            add_neighbours, *arguments, cpu=stage.other_cores, netns=self.network.far
        )

    def start_walker(self, stage: Stage) -> Actor:
        return self.start_reader(stage, "/proc/net/arp", self.network.far)
