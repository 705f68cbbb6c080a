"""An agent counts connections by reading /proc/net/tcp, and there are very many.

What it does: a network namespace holds tens of thousands of TCP sockets. An agent reads
/proc/net/tcp (and tcp6's twin, netstat, does the same) every moment to count their states. The
kernel walks its hash tables and writes a line for each socket, bucket by bucket under the bucket's
lock, on the reader's core: a file of many megabytes for one number.

Seen in the wild: collectd's pull request 113 (2.5 s a reading, 0.04 s by netlink), Diamond #660 (58
s at 115,000 connections), telegraf #6559.

What must be seen: system time on one core at the agent's period, its path `tcp4_seq_show` and the
hash table walk below a read, and the file /proc/net/tcp. No packet is late because of it: the core
is busy, not blocked.
"""

import os
import socket
import time

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage

_FILES = 15_000
_HOLDERS = 4


def hold_sockets(address: str, first_port: int, count: int) -> None:
    """Connections to itself: three sockets in four are their ends, the rest listens."""
    listening = []
    ends: list[socket.socket] = []
    for port in range(first_port, first_port + count // 4):
        server = socket.create_server((address, port), backlog=8)
        listening.append(server)
    while len(ends) + 2 <= count - len(listening):
        server = listening[len(ends) // 2 % len(listening)]
        ends.append(socket.create_connection(server.getsockname()))
        ends.append(server.accept()[0])
    while True:
        time.sleep(1)


def count_states(pause_s: float) -> None:
    """By the whole text, in pieces, as a shell's pipe or a line reader takes it."""
    while True:
        descriptor = os.open("/proc/net/tcp", os.O_RDONLY)
        lines = 0
        while piece := os.read(descriptor, 1 << 16):
            lines += piece.count(b"\n")
        os.close(descriptor)
        time.sleep(pause_s)


class ProcNetScan(Scenario):
    name = "proc-net-scan"
    cause = "proc-net-scan"
    twin = "mountinfo-reparse"
    needs = ("ip", "/proc/net/tcp")

    def prepare(self, stage: Stage) -> None:
        network = stage.make_network(gap_s=None)
        self.namespace = network.far
        self.holders = []
        for i in range(_HOLDERS):
            arguments = (
                f"127.0.{stage.random.randrange(256)}.{i + 1}",
                1024 + 5000 * i,
                stage.random.randrange(12_000, _FILES - 100),
            )
            comm = stage.invent("app")
            self.holders.append(
                stage.start(hold_sockets, *arguments, comm=comm, netns=self.namespace, files=_FILES)
            )
        self._wait_until_all_are_there(stage)

    def provoke(self, stage: Stage) -> None:
        pause_s, comm = stage.random.uniform(0.01, 0.04), stage.invent("agent")
        self.reader = stage.start(
            count_states, pause_s, comm=comm, cpu=stage.core, nice=-5, netns=self.namespace
        )
        stage.hold(self.reader, *self.holders)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        shares = measured.shares(stage.core)
        before = measured.shares(stage.core, measured.baseline)["system"]
        impact = {
            "sockets": reached("sockets in the namespace", self.sockets, at_least=30_000),
            "system_share": reached("system share of the core", shares["system"], at_least=0.5),
            "system_share_baseline": round(before, 4),
            "system_share_rise": reached(
                "rise of the core's system share", shares["system"] - before, at_least=0.3
            ),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.reader.comm, self.reader.pid),
            origin=KnownOrigin("process", self.reader.comm),
        )

    def _wait_until_all_are_there(self, stage: Stage) -> None:
        """A holder has all its sockets when their number grows no more."""
        self.sockets, before = 0, -1
        while self.sockets != before or not self.sockets:
            before = self.sockets
            time.sleep(1.0)
            text = stage.run(["cat", "/proc/net/sockstat"], netns=self.namespace)
            self.sockets = next(
                int(line.split()[2]) for line in text.splitlines() if line.startswith("TCP:")
            )
