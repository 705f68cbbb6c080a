"""More packets come in by one queue than one core can take.

Signature: the core is in softirq nearly all the time, in the receive path of the network, first at
interrupt exits, then in ksoftirqd; the core's packets are a multiple of its usual, and of what
other cores take; its backlog overflows.
Confirming signal: packets dropped on that core by /proc/net/softnet_stat, or its budget exceeded
(time_squeeze) where the core has no time left or a softirq waits; many packets a second, and the
time spread over the receive path: one function that takes most of it would be slow, not many. A
budget exceeded on a core that has time is a download: the rest is taken at once.
Source: coreos/bugs #2135 and #1275; irqbalance #38; Documentation/networking/scaling.rst.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import SUFFERING, Kind
from necroscope.analysis.evidence import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Evidence, Origin, WillNotHelp
from necroscope.analysis.stacks import SOFTIRQ
from necroscope.analysis.task_origin import process_origin
from necroscope.model.units import NS_PER_S

RECEIVE: Final = functions(
    "net_rx_action __napi_poll napi_poll process_backlog __netif_receive_skb* netif_receive_skb*"
    " napi_gro_*"
)
BACKLOG: Final = functions("process_backlog")
# Devices whose packets come from this very machine: who sends them can be seen.
LOCAL_SENDS: Final = functions(
    "veth_xmit loopback_xmit br_dev_xmit tun_net_xmit ipvlan_start_xmit macvlan_start_xmit"
)
_LEAST: Final = 0.4
_MANY_PER_S: Final = 3_000.0
_DROPPED_PER_S: Final = 50.0
_SQUEEZED_PER_S: Final = 10.0
_ONE_FUNCTION: Final = 0.6
_MOSTLY: Final = 0.5
_AS_MANY: Final = 0.6
_LEAST_SAMPLES: Final = 10
# The table is read every 10 s.
_LATE_NS: Final = 11 * NS_PER_S


def assess(case: Case) -> Assessment | None:
    held = case.samples.now.share(RECEIVE, inside=SOFTIRQ)
    if case.core is None or held < _LEAST:
        return None
    processed = case.counters.rate("softnet", "processed", cpu=case.core)
    dropped, squeezed = (
        case.counters.rate("softnet", name, cpu=case.core).now or 0.0
        for name in ("dropped", "time_squeeze")
    )
    against, doubt = _against(case, processed.now or 0.0)
    is_much = processed.grew(2, at_least=_MANY_PER_S)
    is_late = squeezed >= _SQUEEZED_PER_S and case.has(Kind.SATURATED, *SUFFERING)
    origin = _origin(case)
    source = f", sent by {origin.name}" if origin and origin.kind == "process" else ""
    return Assessment(
        explains=held,
        is_confirmed=is_much and (dropped >= _DROPPED_PER_S or is_late),
        evidence=[
            in_samples(case, RECEIVE, "receiving packets in softirqs"),
            case.seen(
                f"core {case.core} took {processed.now or 0:,.0f} packets/s"
                f" ({processed.before or 0:,.0f}/s before), dropped {dropped:,.0f}/s, exceeded its"
                f" budget {squeezed:,.0f} times/s",
                "softnet",
                case.core,
            ),
            *_beside(case, processed.now or 0.0),
            *what_held_the_core(case),
            *suffering(case),
        ],
        against=against,
        doubt=doubt,
        would_confirm=(
            "dropped of that core rising in /proc/net/softnet_stat, or time_squeeze while it has no"
            " time left"
        ),
        summary=(
            f"core {case.core} got more packets than it can take:"
            f" {processed.now or 0:,.0f}/s{source}"
        ),
        culprit=case.culprit(RECEIVE),
        origin=origin,
    )


def _against(case: Case, own_per_s: float) -> tuple[list[Evidence], float]:
    """One function that has most of the time is a slow path, and fewer packets would be slow
    too.
    """
    name, share = next(iter(case.samples.now.of(RECEIVE).leaders(1)), ("", 0.0))
    if share >= _ONE_FUNCTION:
        return [
            case.seen(f"{name} alone has {share:.0%} of the receive path", "samples", case.core)
        ], 0.5
    others = _most_elsewhere(case)
    if others is not None and others >= _AS_MANY * own_per_s:
        text = (
            f"another core took {others:,.0f} packets/s meanwhile: it is not one queue alone that"
            " has so many"
        )
        return [case.seen(text, "softnet")], 0.2
    return [], 0.0


def _beside(case: Case, own_per_s: float) -> list[Evidence]:
    others = _most_elsewhere(case)
    if others is None or others >= _AS_MANY * own_per_s:
        return []
    return [case.seen(f"no other core took more than {others:,.0f} packets/s", "softnet")]


def _most_elsewhere(case: Case) -> float | None:
    others = [
        case.counters.rate("softnet", "processed", cpu=cpu).now
        for cpu in case.node.cpus
        if cpu != case.core
    ]
    return max((rate for rate in others if rate is not None), default=None)


def _origin(case: Case) -> Origin | None:
    """Packets of the backlog come from this machine or were steered: who sends them. Else the
    device that the core polls.
    """
    if case.samples.now.share(BACKLOG) >= _MOSTLY * case.samples.now.share(RECEIVE):
        senders = case.samples.elsewhere.of(LOCAL_SENDS).tasks()
        return (
            process_origin(senders[0].comm)
            if senders and senders[0].weight >= _LEAST_SAMPLES
            else None
        )
    counts: dict[str, float] = {}
    rows = (
        case.counters.columns("interrupts")
        .of_core(case.core)
        .within([(from_ns, to_ns + _LATE_NS) for from_ns, to_ns in case.times.spans])
    )
    for device, count in zip(rows["device"], rows["count"], strict=True) if len(rows) else ():
        if device:
            counts[device] = counts.get(device, 0.0) + count
    return (
        Origin("device", max(counts, key=lambda name: counts[name]))
        if any(counts.values())
        else None
    )


CAUSE = Cause(
    slug="softirq-storm",
    title="one queue carries more packets than its core can take",
    confirming=(
        "packets dropped on that core, or its budget exceeded while it has no time left or a"
        " softirq waits; many packets a second, no single slow function"
    ),
    assess=assess,
    fix=(
        (
            "spread the packets: more queues (ethtool -L), receive side scaling over all of them,"
            " receive packet steering"
        ),
        "fewer interrupts a packet: adaptive coalescing (ethtool -C DEVICE adaptive-rx on), GRO",
        "find who sends so much, and whether it must be (broadcasts, retries, health checks)",
    ),
    verify=(
        (
            "dropped and time_squeeze of /proc/net/softnet_stat stand still, and the core has idle"
            " time"
        ),
    ),
    will_not_help=(
        WillNotHelp("irqbalance alone", "one queue is one interrupt: it can be moved, not divided"),
        WillNotHelp(
            "a longer backlog (netdev_max_backlog)",
            "a longer queue before a core that is too slow only waits longer",
        ),
        WillNotHelp("a higher priority for ksoftirqd", "the core has no time left to give"),
    ),
    yields_to=frozenset({"netfilter-rules", "spinlock-contention"}),
)
