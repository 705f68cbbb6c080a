"""More packets come in by one queue than one core can take.

Signature: the core is in softirq nearly all the time, in the receive path of the network, first at
interrupt exits, then in ksoftirqd; the core's packets are a multiple of its usual, and of what
other cores take; its backlog overflows.
Confirming signal: packets dropped on that core by /proc/net/softnet_stat, or its budget exceeded
(time_squeeze) where the core has no time left or a softirq waits; or the core's own time: receiving
has nearly all of it. Always many packets per second, and the time spread over the receive path: one
function that takes most of it would be slow, not many. A budget exceeded on a core that has time is
a download: the rest is taken at once.
Source: coreos/bugs #2135 and #1275; irqbalance #38; Documentation/networking/scaling.rst.
"""

from dataclasses import replace
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.case_counters import Rate
from necroscope.analysis.cause import Assessment, Cause, Signature
from necroscope.analysis.episodes import SUFFERING, EpisodeKind
from necroscope.analysis.interrupt_culprit import interrupt_culprit
from necroscope.analysis.packet_senders import RECEIVE, packet_source
from necroscope.analysis.report import Evidence, WillNotHelp
from necroscope.analysis.stacks import SOFTIRQ
from necroscope.analysis.thresholds import Threshold, Thresholds

SIGNATURE: Final = Signature(
    RECEIVE,
    "receiving packets in softirqs",
    inside=SOFTIRQ,
    least=Threshold(0.4, "a core that serves a fast network has a third of its work in receiving"),
    confirmed=Threshold(0.4, "as `least`: what confirms it is counted in packets, or in time"),
)
LIMITS: Final = Thresholds(
    many_per_s=Threshold(3_000.0, "packets; fewer that fill a core are slow, not many"),
    times_usual=Threshold(2.0, "packets of the core: it gets more than it is used to"),
    dropped_per_s=Threshold(50.0, "packets that had no room in the backlog"),
    squeezed_per_s=Threshold(10.0, "a budget of 300 packets or 2 ms exceeded again and again"),
    no_time_left=Threshold(
        0.8,
        "of the core's time in receiving: then drops are only a question"
        " of how long the queues are",
    ),
    one_function=Threshold(0.6, "one function with most of the path is slow, whatever comes"),
    as_many=Threshold(0.6, "of this core's packets on another core: not one queue alone"),
)


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    if case.core is None or found is None:
        return None
    found = replace(found, culprit=interrupt_culprit(case, RECEIVE))
    processed = case.counters.rate("softnet", "processed", cpu=case.core)
    against, doubt = _against(case, processed.now or 0.0)
    origin = packet_source(case)
    source = f", sent by {origin.name}" if origin and origin.kind == "process" else ""
    return found.assessment(
        summary=(
            f"core {case.core} got more packets than it can take:"
            f" {processed.now or 0:,.0f}/s{source}"
        ),
        origin=origin,
        evidence=[_packets(case, processed), *_compare_cores(case, processed.now or 0.0)],
        is_confirmed=_is_too_much(case, processed),
        against=against,
        doubt=doubt,
    )


def _is_too_much(case: Case, processed: Rate) -> bool:
    """Packets are dropped, or wait; or the core has no time left, which needs no other witness."""
    limits = case.limits
    received = case.samples.now.time_share(RECEIVE, inside=SOFTIRQ)
    are_many = processed.now is None or processed.now >= limits.many_per_s
    is_idle = (case.counters.share("idle") or 0.0) > 1 - limits.no_time_left
    if received >= limits.no_time_left and are_many and not is_idle:
        return True
    is_late = case.has(EpisodeKind.SATURATED, *SUFFERING)
    is_squeezed = _per_s(case, "time_squeeze") >= limits.squeezed_per_s and is_late
    is_more = processed.grew(limits.times_usual, limits.many_per_s)
    return is_more and (_per_s(case, "dropped") >= limits.dropped_per_s or is_squeezed)


def _per_s(case: Case, counter: str) -> float:
    return case.counters.rate("softnet", counter, cpu=case.core).now or 0.0


def _packets(case: Case, processed: Rate) -> Evidence:
    text = (
        f"core {case.core} took {processed.now or 0:,.0f} packets/s ({processed.before or 0:,.0f}/s"
        f" before), dropped {_per_s(case, 'dropped'):,.0f}/s, exceeded its budget"
        f" {_per_s(case, 'time_squeeze'):,.0f} times/s"
    )
    return case.evidence(text, "softnet", case.core)


def _against(case: Case, own_per_s: float) -> tuple[list[Evidence], float]:
    """One function that has most of the time is a slow path, and fewer packets would be slow
    too.
    """
    name, share = next(iter(case.samples.now.of(RECEIVE).leaders(1)), ("", 0.0))
    if share >= case.limits.one_function:
        return [
            case.evidence(f"{name} alone has {share:.0%} of the receive path", "samples", case.core)
        ], 0.5
    others = _most_elsewhere(case)
    if others is not None and others >= case.limits.as_many * own_per_s:
        text = (
            f"another core took {others:,.0f} packets/s meanwhile: more than one queue is this busy"
        )
        return [case.evidence(text, "softnet")], 0.2
    return [], 0.0


def _compare_cores(case: Case, own_per_s: float) -> list[Evidence]:
    others = _most_elsewhere(case)
    if others is None or others >= case.limits.as_many * own_per_s:
        return []
    return [case.evidence(f"no other core took more than {others:,.0f} packets/s", "softnet")]


def _most_elsewhere(case: Case) -> float | None:
    others = [
        case.counters.rate("softnet", "processed", cpu=cpu).now
        for cpu in case.node.cpus
        if cpu != case.core
    ]
    return max((rate for rate in others if rate is not None), default=None)


CAUSE = Cause(
    slug="softirq-storm",
    title="one queue carries more packets than its core can take",
    confirming=(
        "packets dropped on that core, or its budget exceeded while it has no time left or a"
        " softirq waits, or nearly all of its time in receiving; many packets per second, no single"
        " slow function"
    ),
    would_confirm=(
        "dropped of that core rising in /proc/net/softnet_stat, or time_squeeze while it has no"
        " time left"
    ),
    assess=assess,
    signature=SIGNATURE,
    thresholds=LIMITS,
    fix=(
        (
            "spread the packets: more queues (ethtool -L), receive side scaling over all of them,"
            " receive packet steering"
        ),
        "fewer interrupts per packet: adaptive coalescing (ethtool -C DEVICE adaptive-rx on), GRO",
        "find the sender, and whether it must send this much (broadcasts, retries, health checks)",
    ),
    verify=(
        (
            "dropped and time_squeeze of /proc/net/softnet_stat stop rising, and the core has"
            " idle time"
        ),
    ),
    will_not_help=(
        WillNotHelp("irqbalance alone", "one queue is one interrupt: it can be moved, not divided"),
        WillNotHelp(
            "a longer backlog (netdev_max_backlog)",
            "packets only wait longer for a core that is too slow",
        ),
        WillNotHelp("a higher priority for ksoftirqd", "the core has no time left to give"),
    ),
    yields_to=frozenset({"netfilter-rules", "spinlock-contention", "interrupt-handler"}),
)
