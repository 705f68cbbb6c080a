"""Each packet is held against thousands of policy routing rules.

What it does: a controller adds a routing rule for each pod (`ip rule`), and removes none. A modest
stream of packets comes in on one core: for each packet the kernel tries one rule after the other to
find the table that says where it goes, all in softirqs.

Seen in the wild: AWS VPC CNI with a rule for each pod on large nodes, Cilium's egress gateway;
kube-router; net/core/fib_rules.c.

What must be seen: the core nearly full of softirq with few packets, in `fib_rules_lookup` below
`ip_route_input`; the controller that added them, or the sender.
"""

import time
from typing import ClassVar

from necroscope.lab import netlink
from necroscope.lab.handler_hold import HandlerHold
from necroscope.lab.stage import Stage


def add_rules(count: int) -> None:
    """In the order of their priority; for addresses that no node has."""
    netlink.make_all(
        range(count),
        lambda number: netlink.rule((0x0A000000 + number).to_bytes(4, "big"), 1000 + number),
    )
    while True:
        time.sleep(1)


class PolicyRules(HandlerHold):
    name = "policy-rules"
    twin = "policy-rules-few"
    handlers = ("fib_rules_lookup", "fib4_rule_match", "__fib_lookup", "ip_route_input_slow")
    packets_per_s = 20_000
    rules: ClassVar[int] = 9_000

    def start_owner(self, stage: Stage) -> str:
        count = round(self.rules * stage.random.uniform(0.9, 1.1))
        return stage.start(
            add_rules, count, comm=stage.invent("agent"), netns=self.network.far
        ).comm
