"""The same job at the same beat: a timer, a cron job, an agent's round.

Signature: bursts on a core at equal distances, always of a program of the same name, mostly of
another process each time; between them it does nothing. The work itself is ordinary.
Confirming signal: four bursts or more on the dot, as only a clock gives them (a loop with a pause
drifts), and the same program has most of the core in most of them, and hardly runs in between; and
something pays for it: a softirq or thread of the core waits, the core is held in the kernel, or
others that work there have to make way for a tenth of the time. Jobs at a beat are what every node
has: one that nothing feels is not an incident.
Source: cron and systemd timers that fire at the same second everywhere (systemd.timer,
RandomizedDelaySec); the EKS node monitoring agent reads the cron log for it.
"""

from typing import Final

import numpy as np

from necroscope.analysis.attribution import culprit_from
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import SUFFERING, Episode, EpisodeKind, outside
from necroscope.analysis.evidence import suffering
from necroscope.analysis.periodicity import describe_period, period_of_starts
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.analysis.task_origin import origin_of, process_origin
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

LIMITS: Final = Thresholds(
    most=Threshold(0.4, "of the core in a burst: the program is what the burst is made of"),
    in_most_bursts=Threshold(0.7, "of the bursts have it: a timer may be missed now and then"),
    in_between=Threshold(0.25, "of its use in bursts: between them it hardly runs"),
    off_beat_s=Threshold(0.15, "a timer is exact, and bursts are placed to a quarter of a second"),
    drift=Threshold(0.005, "of the period: what a clock's rate may be off"),
    same_beat=Threshold(0.1, "a timer counts from its unit's last start or end, AccuracySec apart"),
    at_work=Threshold(0.3, "of the core that others have between two bursts: there is work"),
    made_way=Threshold(0.5, "of their use that others keep in a burst: they had to make way"),
    part=Threshold(0.1, "of the time is bursts: less is lost in everything else"),
)
# This many bursts are looked at closely.
_BURSTS: Final = 12


def assess(case: Case) -> Assessment | None:
    bursts = _bursts(case)
    period_s = period_of_starts([burst.from_ns for burst in bursts])
    if case.core is None or period_s is None or not bursts:
        return None
    comm, closely = bursts[0].subject or "", bursts[:_BURSTS]
    in_bursts, between = _rates(case, comm, closely)
    usual = sum(in_bursts) / len(in_bursts)
    off_s = _off_beat_s(bursts, period_s)
    paid = _paid(case, comm, closely, period_s)
    own = case.samples.now.of_task(comm)
    culprit = culprit_from(own.tasks()[0], own.path(), case.node) if own.total else None
    who = comm if culprit and culprit.pid is not None else f"{comm} (another process each time)"
    length_s = sum(burst.seconds for burst in bursts) / len(bursts)
    timer, schedule = _timer(case, culprit, period_s) or (None, "")
    every = describe_period(period_s)
    texts = (
        f"{len(bursts)} bursts of {comm} on core {case.core}, {every}, {off_s:.2f} s off the beat",
        f"it uses {usual:.0%} of the core in them and {between:.0%} in between",
    )
    edit = "RandomizedDelaySec spreads it, a longer period does less"
    return Assessment(
        explains=usual,
        is_confirmed=bool(paid)
        and _is_on_the_beat(case, in_bursts, between, off_s - case.limits.drift * period_s),
        evidence=[
            *(case.evidence(text, "samples", case.core) for text in texts),
            *paid,
            *(
                [case.evidence(f"{timer.name} starts its unit: {schedule}", "units")]
                if timer
                else []
            ),
            *suffering(case),
        ],
        summary=f"{who} takes core {case.core} {every} for about {length_s:.1f} s",
        culprit=culprit,
        origin=timer or origin_of(culprit) or process_origin(comm),
        fix=(f"systemctl edit {timer.name}  # {edit}",) if timer else (),
    )


def _is_on_the_beat(case: Case, in_bursts: list[float], between: float, off_s: float) -> bool:
    limits = case.limits
    often = sum(rate >= limits.most for rate in in_bursts) / len(in_bursts)
    is_apart = between <= limits.in_between * sum(in_bursts) / len(in_bursts)
    return often >= limits.in_most_bursts and is_apart and off_s <= limits.off_beat_s


def _bursts(case: Case) -> list[Episode]:
    """All bursts, in the stretch, of the program whose bursts this incident is made of."""
    subject = next(
        (e.subject for e in case.episodes if e.kind is EpisodeKind.BURST and e.cpu == case.core),
        None,
    )
    return [
        e
        for e in case.node.episodes
        if e.kind is EpisodeKind.BURST and (e.cpu, e.subject) == (case.core, subject)
    ]


def _timer(case: Case, culprit: Culprit | None, period_s: float) -> tuple[Origin, str] | None:
    """The timer that starts the culprit's unit at this beat, and its schedule."""
    rows = case.counters.columns("units")
    if culprit is None or culprit.unit is None or not len(rows):
        return None
    rows = rows.at(
        (rows["starts"] == culprit.unit)
        & (np.abs(rows["period_ns"] / NS_PER_S - period_s) <= case.limits.same_beat * period_s)
    )
    return (
        (Origin("unit", str(rows["unit"][-1])), rows["schedule"][-1] or describe_period(period_s))
        if len(rows)
        else None
    )


def _paid(case: Case, comm: str, bursts: list[Episode], period_s: float) -> list[Evidence]:
    """Who felt it: what waited on the core, a core held in the kernel, or the work of others that
    had to make way.
    """
    felt = [e for e in case.episodes if e.cpu == case.core and (e.kind in SUFFERING or e.is_strong)]
    found = [case.evidence(e.text, e.table, e.cpu, e.span) for e in felt[:2]]
    core, spans = [case.core or 0], [burst.span for burst in bursts]
    others = case.node.stacks(Span(spans[0][0], spans[-1][1]), core).without_task(comm)
    at_work = others.where(core, outside(Span(spans[0][0], spans[-1][1]), spans)).busy_share
    in_bursts = others.where(core, spans).busy_share
    limits = case.limits
    part = sum(burst.seconds for burst in bursts) / len(bursts) / period_s
    if at_work >= limits.at_work and in_bursts <= limits.made_way * at_work and part >= limits.part:
        text = (
            f"others get {at_work:.0%} of the core between the bursts and {in_bursts:.0%} in"
            " them: they make way"
        )
        found.append(case.evidence(text, "samples", case.core))
    return found


def _off_beat_s(bursts: list[Episode], period_s: float) -> float:
    """How far the starts lie from the nearest even beat, on average."""
    starts = np.array([burst.from_ns - bursts[0].from_ns for burst in bursts]) / NS_PER_S
    beats = np.round(starts / period_s)
    return float(np.sqrt(np.mean((starts - np.polyval(np.polyfit(beats, starts, 1), beats)) ** 2)))


def _rates(case: Case, comm: str, bursts: list[Episode]) -> tuple[list[float], float]:
    """Shares of the core's time that the program had in each burst that is looked at, and between
    them.
    """
    core = [case.core or 0]
    spans = [burst.span for burst in bursts]
    whole = case.node.stacks(Span(spans[0][0], spans[-1][1]), core).of_task(comm)
    between = outside(Span(spans[0][0], spans[-1][1]), spans)
    return [whole.where(core, [span]).busy_share for span in spans], whole.where(
        core, between
    ).busy_share


CAUSE = Cause(
    slug="periodic-job",
    title="the same job at a regular interval",
    confirming=(
        "four bursts exactly on the beat, by one program that hardly runs in between, and"
        " something that waits for it"
    ),
    would_confirm=(
        "more bursts of the same program, exactly on the beat, and something that waits for them"
        " to end"
    ),
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "find whose timer it is: systemctl list-timers, crontab -l, /etc/cron.d, the agent's"
            " interval"
        ),
        "spread it: RandomizedDelaySec or AccuracySec of the timer, a random sleep in the cron job",
        (
            "let it give way: nice, CPUWeight of its unit, a core without network queues; or do"
            " less each time"
        ),
    ),
    verify=("the bursts are gone, or come at random: `necroscope diagnose` finds no period",),
    will_not_help=(
        WillNotHelp(
            "looking at one-minute averages",
            "one second in ten is a tenth of a core and looks like nothing",
        ),
    ),
    yields_to=frozenset({"*", "irq-core-collision"}),
)
