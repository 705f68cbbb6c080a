"""A network plugin removes thousands of devices in one call, and every change of a network waits.

What it does: one program makes many pairs of virtual devices in a network namespace of its own, and
removes them all by one request, as a network plugin does when a node is drained. The kernel holds
its one lock of all network setup (rtnl_mutex) until the last device is gone. A program in another
namespace that brings a link up stands meanwhile, although the two have nothing in common.

Seen in the wild: Cloudflare 2025 (hung tasks behind rtnl_mutex); kubernetes-sigs/kind and
moby/moby: container starts that stand while others' networks are torn down.

What must be seen: tasks asleep for rtnl_mutex, and who gave it back.
"""

import fcntl
import socket
import struct
import subprocess
import time
from typing import ClassVar

from necroscope.lab.noted_waits import NotedWaits, WaitScenario
from necroscope.lab.scenario import KnownCulprit
from necroscope.lab.stage import Stage

_GROUP = "7"
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1


def make_and_remove(pairs: int, at_once: int, pause_s: float) -> None:
    """Pairs of devices, removed together, or after this many of them."""
    while True:
        for first in range(0, pairs, at_once):
            names = [(f"a{n}", f"b{n}") for n in range(first, min(first + at_once, pairs))]
            text = "".join(
                f"link add {a} type veth peer name {b}\nlink set {a} group {_GROUP}\n"
                for a, b in names
            )
            subprocess.run(["ip", "-batch", "-"], input=text, text=True, check=False)
            time.sleep(pause_s * at_once / pairs)
            subprocess.run(["ip", "link", "del", "group", _GROUP], check=False)
        time.sleep(pause_s)


def bring_up(pause_s: float, log: str) -> None:
    """Sets the flags of its loopback device again and again; the log has how long that took."""
    waits, own = NotedWaits(log), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    request = struct.pack("<16sH14s", b"lo", 0, b"")
    while True:
        (flags,) = struct.unpack_from("<H", fcntl.ioctl(own, _GET_FLAGS, request), 16)
        began = time.monotonic()
        fcntl.ioctl(own, _SET_FLAGS, struct.pack("<16sH14s", b"lo", flags | _UP, b""))
        waits.note(time.monotonic() - began)
        time.sleep(pause_s)


class SharedNetworkSetup(WaitScenario):
    """A program that makes and removes devices, and others that set up theirs."""

    pairs: ClassVar[int]
    at_once: ClassVar[int]
    needs = ("ip",)

    def prepare(self, stage: Stage) -> None:
        self.network = stage.make_network(gap_s=None)
        self.logs = [stage.watch(stage.scratch / f"waits-{number}") for number in range(3)]

    def provoke(self, stage: Stage) -> None:
        comm = stage.invent("app")
        others = [
            stage.start(bring_up, 0.02, log, comm=comm, netns=self.network.far) for log in self.logs
        ]
        plugin = stage.start(
            make_and_remove,
            self.pairs,
            self.at_once,
            stage.random.uniform(0.8, 1.5),
            comm=stage.invent("agent"),
            netns=self.network.near,
        )
        self.culprit = KnownCulprit("ip")
        stage.hold(plugin, *others)


class NetworkSetupConvoy(SharedNetworkSetup):
    name = "network-setup-convoy"
    cause = "kernel-lock-convoy"
    twin = "network-setup-turns"
    seconds = 30
    pairs = 3000
    at_once = 3000
    worst_ms = 350
