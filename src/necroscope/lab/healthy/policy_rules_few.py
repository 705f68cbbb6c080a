"""The packets of `policy-rules` arrive, and there are few rules.

What it does: a controller has added ten routing rules. As many packets come in on
the same core; each takes some microseconds.

Seen in the wild: any node with a second network card.

What must be seen: nothing wrong: the core has time for every packet.
"""

from necroscope.lab.handler_hold import LittleToPass
from necroscope.lab.incidents.policy_rules import PolicyRules


class FewPolicyRules(LittleToPass, PolicyRules):
    name = "policy-rules-few"
    twin = "policy-rules"
    rules = 10
