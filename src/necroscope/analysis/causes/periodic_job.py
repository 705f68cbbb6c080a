"""The same job at the same beat: a timer, a cron job, an agent's round.

Signature: bursts on a core at equal distances, always of a program of the same name, mostly of
another process each time; between them it does nothing. The work itself is ordinary.
Confirming signal: four bursts or more on the dot, as only a clock gives them (a loop with a pause
drifts), and the same program has most of the core in most of them, and hardly runs in between; and
somebody pays for it: a softirq or thread of the core waits, the core is held in the kernel, or
others that work there have to make way for a tenth of the time. Jobs at a beat are what every node
has: one that nobody feels is no incident.
Source: cron and systemd timers that fire at the same second everywhere (systemd.timer,
RandomizedDelaySec); the EKS node monitoring agent reads the cron log for it.
"""

from typing import Final

import numpy as np

from necroscope.analysis.attribution import named
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import SUFFERING, Episode, Kind, outside
from necroscope.analysis.evidence import suffering
from necroscope.analysis.periodicity import period_of_starts, told
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.analysis.task_origin import origin_of, process_origin
from necroscope.model.units import NS_PER_S

_MOST: Final = 0.4
_IN_MOST_BURSTS: Final = 0.7
_IN_BETWEEN: Final = 0.25
# How far starts may lie from their beat: a timer is exact, and bursts are told to a quarter of a
# second.
_OFF_BEAT_S: Final = 0.15
# A timer counts from the last start or end of its unit, and is as exact as AccuracySec lets it be.
_SAME_BEAT: Final = 0.1
# Others have so much of the core between two bursts and so little of that in them; and bursts take
# so much of the time.
_AT_WORK: Final = 0.3
_MADE_WAY: Final = 0.5
_PART: Final = 0.1
# As many bursts as are looked at.
_BURSTS: Final = 12


def assess(case: Case) -> Assessment | None:
    bursts = _bursts(case)
    period_s = period_of_starts([burst.from_ns for burst in bursts])
    if case.core is None or period_s is None or not bursts:
        return None
    comm = bursts[0].subject or ""
    looked_at = bursts[:_BURSTS]
    in_bursts, between = _rates(case, comm, looked_at)
    paid = _paid(case, comm, looked_at, period_s)
    off_s = _off_beat_s(bursts, period_s)
    usual = sum(in_bursts) / len(in_bursts)
    often = sum(rate >= _MOST for rate in in_bursts) / len(in_bursts)
    own = case.samples.now.of_task(comm).tasks()
    culprit = named(own[0], case.samples.now.of_task(comm).path(), case.node) if own else None
    who = comm if culprit and culprit.pid is not None else f"{comm} (another process each time)"
    length_s = sum(burst.seconds for burst in bursts) / len(bursts)
    timer, schedule = _timer(case, culprit, period_s) or (None, "")
    return Assessment(
        explains=usual,
        is_confirmed=bool(paid)
        and often >= _IN_MOST_BURSTS
        and between <= _IN_BETWEEN * usual
        and off_s <= _OFF_BEAT_S + 0.005 * period_s,
        evidence=[
            case.seen(
                f"{len(bursts)} bursts of {comm} on core {case.core}, {told(period_s)}, {off_s:.2f}"
                " s off the beat",
                "samples",
                case.core,
            ),
            case.seen(
                f"it has {usual:.0%} of the core in them and {between:.0%} in between",
                "samples",
                case.core,
            ),
            *paid,
            *([case.seen(f"{timer.name} starts its unit: {schedule}", "units")] if timer else []),
            *suffering(case),
        ],
        would_confirm=(
            "more bursts of the same program, exactly on the beat, and somebody who waits for them"
            " to end"
        ),
        summary=f"{who} takes core {case.core} {told(period_s)} for about {length_s:.1f} s",
        culprit=culprit,
        origin=timer or origin_of(culprit) or process_origin(comm),
        fix=(
            (
                (
                    f"systemctl edit {timer.name}  # RandomizedDelaySec spreads it, a longer period"
                    " does less"
                ),
            )
            if timer
            else ()
        ),
    )


def _bursts(case: Case) -> list[Episode]:
    """All bursts, in the stretch, of the program whose bursts this incident is made of."""
    subject = next(
        (e.subject for e in case.episodes if e.kind is Kind.BURST and e.cpu == case.core), None
    )
    return [
        e
        for e in case.node.episodes
        if e.kind is Kind.BURST and (e.cpu, e.subject) == (case.core, subject)
    ]


def _timer(case: Case, culprit: Culprit | None, period_s: float) -> tuple[Origin, str] | None:
    """The timer that starts the culprit's unit at this beat, and its schedule."""
    rows = case.counters.columns("units")
    if culprit is None or culprit.unit is None or not len(rows):
        return None
    rows = rows.at(
        (rows["starts"] == culprit.unit)
        & (np.abs(rows["period_ns"] / NS_PER_S - period_s) <= _SAME_BEAT * period_s)
    )
    return (
        (Origin("unit", str(rows["unit"][-1])), rows["schedule"][-1] or told(period_s))
        if len(rows)
        else None
    )


def _paid(case: Case, comm: str, bursts: list[Episode], period_s: float) -> list[Evidence]:
    """Who felt it: what waited on the core, a core held in the kernel, or the work of others that
    had to make way.
    """
    felt = [e for e in case.episodes if e.cpu == case.core and (e.kind in SUFFERING or e.is_strong)]
    found = [case.seen(e.text, e.table, e.cpu, e.span) for e in felt[:2]]
    core, spans = [case.core or 0], [burst.span for burst in bursts]
    others = case.node.stacks((spans[0][0], spans[-1][1]), core).without_task(comm)
    at_work = others.where(core, outside((spans[0][0], spans[-1][1]), spans)).busy_share
    in_bursts = others.where(core, spans).busy_share
    part = sum(burst.seconds for burst in bursts) / len(bursts) / period_s
    if at_work >= _AT_WORK and in_bursts <= _MADE_WAY * at_work and part >= _PART:
        text = (
            f"others have {at_work:.0%} of the core between the bursts and {in_bursts:.0%} in them:"
            " they make way"
        )
        found.append(case.seen(text, "samples", case.core))
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
    whole = case.node.stacks((spans[0][0], spans[-1][1]), core).of_task(comm)
    between = outside((spans[0][0], spans[-1][1]), spans)
    return [whole.where(core, [span]).busy_share for span in spans], whole.where(
        core, between
    ).busy_share


CAUSE = Cause(
    slug="periodic-job",
    title="the same job at a steady beat",
    confirming=(
        "four bursts exactly on the beat, of one program, which hardly runs in between, and"
        " somebody who waits for it"
    ),
    assess=assess,
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
            "looking at averages of a minute",
            "a second in ten is a tenth of one core and looks like nothing",
        ),
    ),
    yields_to=frozenset({"*", "irq-core-collision"}),
)
