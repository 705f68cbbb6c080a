"""An agent reads the routing table as text, and a routing daemon has filled it.

What it does: a daemon (BIRD, a CNI plugin in routed mode) adds a route for each host. An agent
reads /proc/net/route every moment to find the default route. The kernel walks the whole trie and
writes a line of 128 bytes for each.

Seen in the wild: Calico and kube-router nodes with a route for each pod, read by health checks and
by libraries that look for the default gateway; net/ipv4/fib_trie.c.

What must be seen: one core in system mode in `fib_route_seq_show` and `leaf_walk_rcu` below a read;
routes (slab cache ip_fib_alias) that grow; the daemon that adds them.
The twin reads the same file as hard while there are few.
"""

import socket

from necroscope.lab import netlink
from necroscope.lab.actor import Actor
from necroscope.lab.stage import Stage
from necroscope.lab.state_walk import StateWalk, growing


def add_routes(device: str, first: int, more_per_s: float, directory: str) -> None:
    """10.0.0.0/8, in a network namespace of its own."""
    index = socket.if_nametoindex(device)
    netlink.make_all(
        growing(first, more_per_s, directory),
        lambda number: netlink.route((0x0A000000 + number).to_bytes(4, "big"), index),
    )


class RouteWalk(StateWalk):
    name = "route-walk"
    twin = "route-walk-few"
    population = ("slab:ip_fib_alias", "slab:ip_fib_trie")
    first, more_per_s = 300_000, 12_000
    needs = ("ip", "/proc/net/route")

    def start_maker(self, stage: Stage, first: int, more_per_s: int) -> Actor:
        self.network = stage.make_network(gap_s=None)
        arguments = (self.network.far_device, first, more_per_s, str(stage.scratch))
        return stage.start(add_routes, *arguments, cpu=stage.other_cores, netns=self.network.far)

    def start_walker(self, stage: Stage) -> Actor:
        return self.start_reader(stage, "/proc/net/route", self.network.far)
