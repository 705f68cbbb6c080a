"""Gigabytes over loopback.

What it does: one process sends as much as another one takes, over TCP on the loopback device of a
namespace of its own, which is where a node's services talk to one another. Both are in the kernel
most of the time: copying, and taking segments in softirqs.

Seen in the wild: object stores, shuffles and parameter servers with both ends on one node.

What must be seen: nothing wrong, although cores are full of system and softirq time in network
functions: nothing is dropped, and a packet that others send is not late.
"""

import socket
import time

from necroscope.lab.busy import busy_and_well
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Scenario, Truth, reached
from necroscope.lab.stage import Stage

_ADDRESS = "127.0.0.1"


def take(port: int) -> None:
    """Everything that comes, as long as it lives."""
    with socket.create_server((_ADDRESS, port)) as server:
        connection, _ = server.accept()
        buffer = bytearray(1 << 18)
        while connection.recv_into(buffer):
            pass


def send(port: int, piece_bytes: int, log: str) -> None:
    """As much as is taken, and how much that was into a file."""
    connection = _connect(port)
    piece, total = bytes(piece_bytes), 0
    with open(log, "w", encoding="ascii") as sent:
        while True:
            until_s = time.monotonic() + 0.1
            while time.monotonic() < until_s:
                connection.sendall(piece)
                total += piece_bytes
            sent.seek(0)
            sent.write(f"sent {total}\n")
            sent.flush()


def _connect(port: int) -> socket.socket:
    while True:
        try:
            return socket.create_connection((_ADDRESS, port))
        except ConnectionRefusedError:
            time.sleep(0.05)


class BulkTcp(Scenario):
    name = "bulk-tcp"
    twin = "softirq-storm"
    needs = ("ip",)

    def prepare(self, stage: Stage) -> None:
        self.network = stage.make_network(gap_s=0.02)

    def provoke(self, stage: Stage) -> None:
        port, size = stage.random.randrange(2000, 9000), stage.random.randrange(1 << 14, 1 << 18)
        self.log = stage.watch(stage.scratch / stage.invent("tool"))
        taker = stage.start(take, port, comm=stage.invent("app"), netns=self.network.far)
        sender = stage.start(
            send, port, size, str(self.log), comm=stage.invent("app"), netns=self.network.far
        )
        stage.hold(taker, sender)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        truth = busy_and_well(stage, measured, least_busy=0.7)
        rate = measured.growth(str(self.log), "sent") / stage.seconds
        truth.impact["bytes_per_s"] = reached("bytes per second", rate, at_least=50e6)
        return truth
