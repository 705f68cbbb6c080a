"""What an incident did to traffic: what TCP had to send again, what listeners and tables dropped,
what the device counted.
"""

from typing import Final

import numpy as np

from necroscope.analysis.case import Case
from necroscope.analysis.columns import ColumnArrays
from necroscope.analysis.device_counters import CounterKind, summed, within
from necroscope.analysis.episodes import EpisodeKind
from necroscope.analysis.happenings import NIC_KINDS
from necroscope.analysis.report import Evidence
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

# What a reset lost is sent again within seconds: the first timer fires after a fifth of one, the
# fourth after three.
_AFTER_NS: Final = 5 * NS_PER_S
# Reported where they are this many, and this many times what is usual.
_LEAST: Final = 10
_TIMES: Final = 3.0
_WORDS: Final = {
    "tcp_retransmits": "TCP segments sent again",
    "tcp_timeouts": "retransmission timers fired",
    "tcp_syn_retransmits": "connection requests sent again",
    "tcp_aborts_on_timeout": "connections given up",
    "tcp_established_resets": "established connections reset",
    "tcp_attempt_fails": "connections not established",
    "tcp_out_resets": "resets sent",
    "listen_overflows": "connections refused by a listener whose queue was full",
    "listen_drops": "connections dropped by listeners",
    "udp_receive_errors": "datagrams for a full socket",
    "tcp_receive_collapsed": "segments collapsed in a full socket",
    "conntrack_drops": "packets dropped by connection tracking",
    "conntrack_early_drops": "tracked connections evicted for others",
    "conntrack_insert_failed": "packets of racing connections dropped",
}
_MOST: Final = 4
_TELLS: Final = frozenset({CounterKind.ALLOWANCE, CounterKind.LOST, CounterKind.CARRIER})


def about(case: Case) -> list[Evidence]:
    """For incidents of the network alone: others do nothing to it."""
    is_of_network = any(event.kind in NIC_KINDS for event in case.events) or case.has(
        EpisodeKind.SOFTIRQ_DELAYED,
        EpisodeKind.SOFTIRQ_FROZEN,
        EpisodeKind.THREAD_DELAYED,
        EpisodeKind.PACKETS_DROPPED,
        EpisodeKind.TRAFFIC_LOST,
    )
    return [*_of_tcp(case), *of_devices(case, _TELLS)] if is_of_network else []


def _of_tcp(case: Case) -> list[Evidence]:
    rows = case.counters.columns("network")
    if not len(rows):
        return []
    from_ns, to_ns = case.window
    after = Span(from_ns, min(to_ns, case.node.span[1]) + _AFTER_NS)
    here, quiet = rows.within([after]), rows.within(case.times.quiet)
    risen = {name: _count_increase(name, here, quiet) for name in _WORDS}
    texts = [f"{count:,.0f} {_WORDS[name]}" for name, count in risen.items() if count][:_MOST]
    sent, opened = (
        np.nansum(here["tcp_out_segments"] + here["tcp_in_segments"]),
        np.nansum(here["tcp_active_opens"] + here["tcp_passive_opens"]),
    )
    if not texts:
        return []
    of_all = f", of {sent:,.0f} segments and {opened:,.0f} new connections"
    return [case.evidence(f"traffic: {', '.join(texts)}{of_all}", "network", span=after)]


def _count_increase(name: str, here: ColumnArrays, quiet: ColumnArrays) -> float:
    """How many there were; 0 where that is what is usual."""
    now, before = here.per_second(name), quiet.per_second(name)
    count = float(np.nansum(here[name]))
    is_more = now is not None and now >= _TIMES * (before or 0.0)
    return count if count >= _LEAST and is_more else 0.0


def of_devices(case: Case, kinds: frozenset[CounterKind]) -> list[Evidence]:
    """What its devices counted meanwhile."""
    rises = [one for one in within(case.node.device_rises, case.window) if one.kind in kinds]
    return [
        case.evidence(f"{one.device}: {one.counter} rose by {total:,}, {one.kind.value}", "nics")
        for one, total in summed(rises)[:_MOST]
    ]
