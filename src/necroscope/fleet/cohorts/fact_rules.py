"""Which facts say where a node is, and which cannot be a cause: names of one node, what passes,
what failures leave behind.

A place goes with a failure only by what it carries, so it is never named. The others are left out
before anything is counted.
"""

import re
from typing import Any, Final, NamedTuple

_PLACE: Final = re.compile(
    r"(.*[./_ -])?(zones?|az|regions?|racks?|rows?|rooms?|halls?|aisles?|data_?cent(er|re)s?|dc"
    r"|sites?|campus|buildings?|clusters?|locations?|continents?|countr(y|ies)|fault_?domains?"
    r"|failure_?domains?|placement(_group)?|subnets?|vpc|spines?|tor|switch)"
    r"([_ -](id|name))?",
    re.IGNORECASE,
)
_PLACE_KINDS: Final = frozenset({"label", "cloud", "environment", "place"})
_IDENTITY: Final = re.compile(
    r"(.*[./_ -])?(boot_?id|machine_?id|instance_?id|node_?(id|name)|host_?(id|name)|fqdn"
    r"|serial(_?number)?|uuid|mac(_?address)?|ip|ipv[46]|address(es)?|gateway|provider_?id)",
    re.IGNORECASE,
)
_PASSING: Final = re.compile(
    r"(.*[./_ -])?(uptime(_\w+)?|booted|boot_?time|userspace_s|load(_?average)?|temperature"
    r"|last_\w+)",
    re.IGNORECASE,
)
# Plural, or said to be a count: `gro_flush_timeout` is a setting, `tx_timeouts` is what happened.
_CONSEQUENCE: Final = re.compile(
    r"(.*[./_ -])?(resets|restarts|nrestarts|timeouts|errors|drops|failures|faults|lockups|stalls"
    r"|crashes|deaths|kills|panics|oops|hangs|tainted|\w+[_ -](counter|events_total|total))"
    r"|.*(reset|restart|timeout|error|failure|lockup|crash|kill)[_ -]?count",
    re.IGNORECASE,
)
# Values of their own on most nodes that have the fact tell nodes apart, not kinds of nodes.
_OWN_VALUES: Final = 0.5
_FEW_NODES: Final = 5

IDENTITY: Final = "names of one node (host names, ids, addresses)"
PASSING: Final = "things that pass (boot time, uptime)"
CONSEQUENCE: Final = "what failures leave behind (counts of resets and restarts, taints)"
OWN: Final = "a value of its own on most nodes"
SAME: Final = "the same on every node"


def is_place(kind: str, name: str) -> bool:
    return kind in _PLACE_KINDS and _PLACE.fullmatch(name) is not None


def reason_to_leave_out(kind: str, name: str) -> str | None:
    """By name alone. A label is what operators chose to tell nodes apart by: of those only names
    and counts are left out.
    """
    last = name.rsplit("/", 1)[-1]
    if _IDENTITY.fullmatch(last) and kind not in (
        "module",
        "package",
        "unit_file",
        "unit_outcome",
        "unit_preset",
    ):
        return IDENTITY
    if _PASSING.fullmatch(last) and kind in (
        "node",
        "boot",
        "label",
        "environment",
        "kernel",
        "cloud",
    ):
        return PASSING
    if _CONSEQUENCE.fullmatch(last) and kind not in (
        "module",
        "package",
        "unit_file",
        "unit_outcome",
        "unit_preset",
        "executable",
    ):
        return CONSEQUENCE
    return None


def has_own_values(values: int, nodes: int) -> bool:
    """Of `nodes` nodes that have a fact it takes `values` values."""
    return nodes >= _FEW_NODES and values > _OWN_VALUES * nodes


class Predicate(NamedTuple):
    """`value` None means that the node does not have the fact; negated: all nodes but those with
    this value. Ordered: those with this value or one above it.
    """

    kind: str
    name: str
    value: str | None
    is_negated: bool = False
    is_ordered: bool = False

    @property
    def is_place(self) -> bool:
        return is_place(self.kind, self.name)

    @property
    def subject(self) -> str:
        return self.name if self.kind == "label" else f"{self.kind} {self.name}"

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.subject} is there" if self.is_negated else f"{self.subject} is not there"
        if self.is_ordered:
            return f"{self.subject} is {'below' if self.is_negated else 'at least'} {self.value}"
        return f"{self.subject} is {'not ' if self.is_negated else ''}{self.value}"

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "text": str(self)}
