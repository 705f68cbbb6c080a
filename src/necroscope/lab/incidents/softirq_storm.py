"""More packets than one core can take, all in one queue.

What it does: a sender floods a network with small broadcasts, and a discovery service on the
receiving side listens with many sockets, each of which gets its copy. All packets are steered to
one core. It works in softirqs without a break: first when interrupts return, then in ksoftirqd. Its
backlog fills, packets are dropped, and what else comes by that queue waits.

Seen in the wild: coreos/bugs #2135 and #1275 (ksoftirqd at 100 % of one core while the others
idle), irqbalance #38 (one queue, which no balancing of interrupts can spread).

What must be seen: the core at nearly 100 % softirq, ksoftirqd on it, tens of thousands of packets a
second, the backlog full and packets dropped on that core only; nothing in the kernel is slow, there
is only too much of it.
"""

import resource
import socket
import time

from necroscope.lab.measured import Measurements
from necroscope.lab.network import NEAR_ADDRESS
from necroscope.lab.packets import flood
from necroscope.lab.scenario import KnownOrigin, Scenario, Truth, reached, softirq_culprit
from necroscope.lab.stage import Stage

_BROADCAST = "198.18.0.3"
_EVERYBODY = "ff:ff:ff:ff:ff:ff"


def listen(port: int, sockets: int) -> None:
    """Sockets that share a port each get a copy of a broadcast; what they do not read is dropped at
    their buffer.
    """
    resource.setrlimit(resource.RLIMIT_NOFILE, (sockets + 64, sockets + 64))
    listening = []
    for _ in range(sockets):
        each = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        each.bind(("", port))
        listening.append(each)
    while True:
        time.sleep(1)


class SoftirqStorm(Scenario):
    name = "softirq-storm"
    cause = "softirq-storm"
    twin = "netfilter-rules"
    needs = ("ip",)

    def prepare(self, stage: Stage) -> None:
        self.network = stage.make_network(gap_s=0.02)
        self.port = stage.random.randrange(2000, 9000)
        sockets = stage.random.randrange(60, 120)
        self.listener = stage.start(
            listen, self.port, sockets, comm=stage.invent("agent"), netns=self.network.far
        )

    def provoke(self, stage: Stage) -> None:
        arguments = (
            self.network.near_device,
            NEAR_ADDRESS,
            _BROADCAST,
            _EVERYBODY,
            self.port,
            stage.random.randrange(16, 200),
            None,
        )
        cores, near = stage.other_cores, self.network.near
        self.sender = stage.start(
            flood, *arguments, comm=stage.invent("app"), cpu=cores, netns=near
        )
        stage.hold(self.sender, self.listener)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        softnet = measured.softnet(stage.core)
        impact = {
            "softirq_share": reached(
                "softirq share of the core", measured.shares(stage.core)["softirq"], at_least=0.6
            ),
            "packets_per_s": reached(
                "packets per second on the core",
                softnet["processed"] / stage.seconds,
                at_least=3_000,
            ),
            "dropped": reached(
                "packets dropped because the backlog was full", softnet["dropped"], at_least=1000
            ),
            "squeezed": softnet["squeezed"],
            "packet_delay_p99_ms": measured.delays().p99_ms,
            "packets_lost": measured.delays().lost,
        }
        return Truth(
            impact,
            core=stage.core,
            mode="softirq",
            culprit=softirq_culprit(stage.core, self.sender.comm),
            origin=KnownOrigin(
                "process", self.sender.comm, also=(self.listener.comm, self.network.far_device)
            ),
        )
