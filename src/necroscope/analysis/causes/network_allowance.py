"""The instance's network allowance is used up, and the device holds back or drops packets.

Signature: retransmits and slow connections while every core has time; `bw_in_allowance_exceeded`,
`pps_allowance_exceeded`, `conntrack_allowance_exceeded` or one of their like rises at every read.
The guest sends and receives as it should: the cloud shapes it.
Confirming signal: an allowance counter of the driver rises by ten per second and more for ten
seconds. A burst of a moment is shaped on every instance.
Source: amzn-drivers README (ENA 2.2.10 and later); EKS node monitoring agent; Linux 5.10
ena_ethtool.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.device_counters import CounterKind, summed, within
from necroscope.analysis.episodes import touches
from necroscope.analysis.evidence import suffering
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.analysis.thresholds import Threshold, Thresholds

LIMITS: Final = Thresholds(
    lasts_s=Threshold(
        9.0, "two reads of the device and more: bursts of a moment are shaped always"
    ),
    per_s=Threshold(10.0, "packets held back per second; fewer are hardly felt"),
)


def assess(case: Case) -> Assessment | None:
    rises = within(case.node.device_rises, case.window)
    shaped = summed([one for one in rises if one.kind is CounterKind.ALLOWANCE])
    if not shaped:
        return None
    worst, packets = shaped[0]
    seconds = max(case.seconds, 1.0)
    held = _held(case)
    return Assessment(
        explains=0.3 if case.core is not None else 0.9,
        is_confirmed=seconds >= case.limits.lasts_s and packets / seconds >= case.limits.per_s,
        evidence=[
            *(
                case.evidence(f"{one.device}: {one.counter} rose by {total:,}", "nics")
                for one, total in shaped[:4]
            ),
            *suffering(case),
        ],
        against=held,
        doubt=0.3 if held else 0.0,
        summary=(
            f"{worst.device} held back or dropped {packets:,} packets in {seconds:.0f} s:"
            f" {worst.counter}, a limit set by the cloud, not by this node"
        ),
        culprit=Culprit(),
        origin=Origin("device", worst.device),
    )


def _held(case: Case) -> list[Evidence]:
    """A core that was held loses packets by itself."""
    held = [
        episode
        for episode in case.node.episodes
        if episode.is_strong and episode.cpu is not None and touches(episode.span, case.window)
    ]
    return [case.evidence(e.text, e.table, e.cpu, e.span) for e in held[:1]]


CAUSE = Cause(
    slug="network-allowance",
    title="the instance's network allowance is used up",
    confirming="an allowance counter of the network driver that rises for ten seconds or more",
    would_confirm="`ethtool -S DEV | grep allowance` twice, some seconds apart",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        "a larger instance type, or one whose baseline bandwidth is higher (n and dn types on AWS)",
        "spread the traffic: `ss -ti` and `nstat` show what sends most",
        "conntrack_allowance_exceeded: open fewer connections, or reuse them",
    ),
    verify=("the `*_allowance_exceeded` counters of `ethtool -S DEV` stop rising",),
    will_not_help=(
        WillNotHelp(
            "IRQ affinity, more queues, larger rings", "the packets are lost outside the node"
        ),
        WillNotHelp("more CPU", "every core has time"),
    ),
)
