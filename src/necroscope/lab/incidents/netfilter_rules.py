"""Every packet walks through tens of thousands of firewall rules.

What it does: a network namespace has a chain of rules that are tried one after the other, as a
service proxy or an address block list leaves them, and takes a modest stream of packets on one
core. Each packet passes all of them. The core is full with a tenth of the packets it could take
otherwise, in softirqs, and the packets behind wait.

Seen in the wild: kubernetes #37853 (2,000 to 3,000 services), #48107, #14870 (164,757 rules on a
node): iptables costs grow with the number of rules, in the packets and in each change of the rules.

What must be seen: the core nearly full of softirq with few packets processed, and in its stacks the
rule loop (`ipt_do_table`, or `nft_do_chain` where nftables is behind iptables) below the network
receive path. The rules are to act on, not the device.
"""

import shutil

from necroscope.lab.measured import Measurements
from necroscope.lab.network import FAR_ADDRESS, NEAR_ADDRESS
from necroscope.lab.packets import flood
from necroscope.lab.scenario import (
    CannotProvoke,
    KnownOrigin,
    Scenario,
    Truth,
    reached,
    softirq_culprit,
)
from necroscope.lab.stage import Stage

# Rules by the program that loads them: a rule of nftables costs more.
_BACKENDS = {"iptables-legacy-restore": (40_000, 100_000), "iptables-nft-restore": (8_000, 20_000)}


def rules(count: int, chain: str, first: int) -> str:
    """In the form of iptables-save: a block list in one chain."""
    addresses = (first + i for i in range(count))
    lines = (
        f"-A {chain} -s 10.{a >> 16 & 255}.{a >> 8 & 255}.{a & 255}/32 -j DROP" for a in addresses
    )
    return "\n".join(["*filter", f":{chain} - [0:0]", *lines, f"-A INPUT -j {chain}", "COMMIT", ""])


class NetfilterRules(Scenario):
    name = "netfilter-rules"
    cause = "netfilter-rules"
    twin = "softirq-storm"
    needs = ("ip", "iptables")

    def prepare(self, stage: Stage) -> None:
        present = [program for program in _BACKENDS if shutil.which(program)]
        if not present:
            raise CannotProvoke(
                "there is no iptables-legacy-restore and no iptables-nft-restore",
                "apt install iptables",
            )
        self.network = stage.make_network(gap_s=0.02)
        loader = stage.random.choice(present)
        self.count = stage.random.randrange(*_BACKENDS[loader])
        chain = stage.random.choice(("BLOCKLIST", "KUBE-SERVICES", "DENY-EGRESS", "GEOIP-DROP"))
        stage.run(
            [loader],
            feed=rules(self.count, chain, stage.random.randrange(1 << 16)),
            netns=self.network.far,
        )

    def provoke(self, stage: Stage) -> None:
        network, random = self.network, stage.random
        hardware = stage.run(
            ["cat", f"/sys/class/net/{network.far_device}/address"], netns=network.far
        ).strip()
        rate = random.randrange(12_000, 20_000)
        arguments = (
            network.near_device,
            NEAR_ADDRESS,
            FAR_ADDRESS,
            hardware,
            random.randrange(2000, 9000),
            64,
            rate,
        )
        cores = stage.other_cores
        self.sender = stage.start(
            flood, *arguments, comm=stage.invent("app"), cpu=cores, netns=network.near
        )
        stage.hold(self.sender)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        softnet = measured.softnet(stage.core)
        delays = measured.delays()
        is_lossy = (
            delays.lost > 0.05 * delays.sent
        )  # then those that came are the lucky ones, and their delays say little
        impact = {
            "rules": self.count,
            "softirq_share": reached(
                "softirq share of the core", measured.shares(stage.core)["softirq"], at_least=0.6
            ),
            "packets_per_s": reached(
                "packets per second on the core",
                softnet["processed"] / stage.seconds,
                at_most=30_000,
            ),
            "dropped": softnet["dropped"],
            "packet_delay_p99_ms": reached(
                "99th percentile of packet delays in ms",
                delays.p99_ms,
                at_least=0 if is_lossy else 20,
            ),
            "packets_lost": delays.lost,
            "packets_sent": delays.sent,
        }
        return Truth(
            impact,
            core=stage.core,
            mode="softirq",
            culprit=softirq_culprit(stage.core, self.sender.comm),
            origin=KnownOrigin(
                "setting", "netfilter rules", also=("iptables rules", "nftables rules")
            ),
        )
