"""An agent reads the table of tracked connections, and a scanner has filled it.

What it does: a program sends a packet to address after address; connection tracking makes an entry
for each. An agent reads /proc/net/nf_conntrack every moment, as some exporters and service proxies
do. The kernel walks the hash table and writes a line for each entry.

Seen in the wild: kubernetes #129982 (kube-proxy dumps the whole table at each change),
node_exporter and conntrack exporters on NAT gateways; net/netfilter/nf_conntrack_standalone.c.

What must be seen: one core in system mode in `ct_seq_next` and `ct_seq_show` below a read; tracked
connections that grow; the scanner. The twin reads the same file as hard while there are few.
"""

import contextlib
import socket
from pathlib import Path

from necroscope.lab.actor import Actor
from necroscope.lab.stage import Stage
from necroscope.lab.state_walk import StateWalk, growing

_TIMEOUT = Path("/proc/sys/net/netfilter/nf_conntrack_udp_timeout")
_PORT = 9


def scan(first: int, more_per_s: float, directory: str) -> None:
    """In a network namespace of its own, addresses of 127.0.0.0/8; entries outlast the lab."""
    _TIMEOUT.write_text("900")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in growing(first, more_per_s, directory):
            address = socket.inet_ntoa((0x7F000002 + number).to_bytes(4, "big"))
            # The next packet shows that no process listens there.
            with contextlib.suppress(ConnectionRefusedError):
                sender.sendto(b"x", (address, _PORT))


class ConntrackWalk(StateWalk):
    name = "conntrack-walk"
    twin = "conntrack-walk-few"
    population = ("slab:nf_conntrack", "conntrack-entries")
    first, more_per_s = 100_000, 4_500
    needs = ("ip", "iptables", "/proc/net/nf_conntrack")

    def start_maker(self, stage: Stage, first: int, more_per_s: int) -> Actor:
        self.network = stage.make_network(gap_s=None)
        rule = [
            "--append",
            "OUTPUT",
            "--match",
            "conntrack",
            "--ctstate",
            "NEW",
            "--jump",
            "ACCEPT",
        ]
        stage.run(["iptables", *rule], netns=self.network.far)
        arguments = (first, more_per_s, str(stage.scratch))
        return stage.start(scan, *arguments, cpu=stage.other_cores, netns=self.network.far)

    def start_walker(self, stage: Stage) -> Actor:
        return self.start_reader(stage, "/proc/net/nf_conntrack", self.network.far)
