"""Connection tracking or the neighbour table drops packets: it is full, or two packets raced.

Signature: connections that time out at random and name lookups that take five seconds, while cores
and device have nothing to complain of.
Confirming signal: the kernel says `nf_conntrack: table full` or `neighbour table overflow`, or
connection tracking counts drops; or it counts failed inserts, one per second and more: two packets
of one new flow met, as the two lookups of a resolver do, and one of them was dropped.
Source: kubernetes #18604 (table full), #56903 (insert_failed and 5 s); OpenAI 2018, scaling
Kubernetes to 2,500 nodes (ARP); net/netfilter/nf_conntrack_core.c; net/core/neighbour.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence import of_event, suffering
from necroscope.analysis.happenings import TRAFFIC_KINDS
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.analysis.thresholds import Threshold, Thresholds

LIMITS: Final = Thresholds(
    failed_per_s=Threshold(1.0, "failed inserts per second; a few a day are every node's"),
    failed_s=Threshold(4.0, "for this long: one burst of lookups is over in a second"),
)
_NEIGHBOUR: Final = "neighbour_overflow"
_DROPS: Final = ("conntrack_drops", "conntrack_early_drops")


def assess(case: Case) -> Assessment | None:
    events = case.events_of(*TRAFFIC_KINDS)
    drops = case.counters.rate("network", *_DROPS)
    failed = case.counters.rate("network", "conntrack_insert_failed")
    is_full = bool(events) or bool(drops.now)
    has_raced = (failed.now or 0.0) >= case.limits.failed_per_s
    if not is_full and not has_raced:
        return None
    if case.core is not None:
        return None
    what, who = _table(case, is_full=is_full)
    return Assessment(
        explains=0.9,
        is_confirmed=is_full or case.seconds >= case.limits.failed_s,
        evidence=[
            *(of_event(case, event) for event in events[:3]),
            *_tracked_connections(case),
            *suffering(case),
        ],
        summary=what,
        culprit=Culprit(),
        origin=Origin("table", who),
    )


def _table(case: Case, *, is_full: bool) -> tuple[str, str]:
    if case.events_of(_NEIGHBOUR):
        return "the neighbour table is full, and packets to new neighbours are dropped", "neighbour"
    if is_full:
        return "the connection tracking table is full, and packets are dropped", "nf_conntrack"
    raced = "packets of new connections race for their entry in connection tracking"
    return f"{raced}, and one of each pair is dropped", "nf_conntrack"


def _tracked_connections(case: Case) -> list[Evidence]:
    entries = case.counters.level("network", "conntrack_entries")
    return (
        []
        if entries is None
        else [case.evidence(f"{entries:,.0f} connections are tracked", "network")]
    )


CAUSE = Cause(
    slug="network-table-drops",
    title="connection tracking or the neighbour table drops packets",
    confirming=(
        "the kernel's message that a table is full, or connection tracking's count of drops or,"
        " for four seconds, of failed inserts"
    ),
    would_confirm="`conntrack -S` (drop, early_drop, insert_failed) twice, some seconds apart",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        "full: raise net.netfilter.nf_conntrack_max, shorten its timeouts, find what opens them",
        "neighbours: raise net.ipv4.neigh.default.gc_thresh1 to gc_thresh3",
        (
            "raced lookups: `options single-request-reopen` in resolv.conf, or a resolver on the"
            " node (NodeLocal DNSCache)"
        ),
    ),
    verify=("drop, early_drop and insert_failed of `conntrack -S` stop rising",),
    will_not_help=(
        WillNotHelp("more CPU or another network driver", "neither is the bottleneck"),
        WillNotHelp("a larger table against failed inserts", "two packets raced for one entry"),
    ),
)
