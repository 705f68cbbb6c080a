"""The same job at the same beat: a timer, a cron job, an agent's round.

Signature: bursts on a core at equal distances, always of a program of the same name, mostly of another process each time; between
them it does nothing. The work itself is ordinary.
Confirming signal: four bursts or more at a steady period, and the same program has most of the core in most of them, and hardly
runs in between.
Source: cron and systemd timers that fire at the same second everywhere (systemd.timer, RandomizedDelaySec); the EKS node
monitoring agent reads the cron log for it.
"""

from typing import Final

from necroscope.analysis.attribution import named
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import Episode, outside
from necroscope.analysis.evidence_texts import suffering
from necroscope.analysis.periodicity import period_of_starts, told
from necroscope.analysis.report import Origin, WillNotHelp

_MOST: Final = 0.4
_IN_MOST_BURSTS: Final = 0.7
_IN_BETWEEN: Final = 0.25
# As many bursts as are looked at.
_BURSTS: Final = 12


def assess(case: Case) -> Assessment | None:
    bursts = _bursts(case)
    period_s = period_of_starts([burst.from_ns for burst in bursts])
    if case.core is None or period_s is None or not bursts:
        return None
    comm = bursts[0].subject or ""
    in_bursts, between = _rates(case, comm, bursts[:_BURSTS])
    usual = sum(in_bursts) / len(in_bursts)
    often = sum(rate >= _MOST for rate in in_bursts) / len(in_bursts)
    own = case.now.of_task(comm).tasks()
    culprit = named(own[0], case.now.of_task(comm).path(), case.node) if own else None
    who = comm if culprit and culprit.pid is not None else f"{comm} (another process each time)"
    length_s = sum(burst.seconds for burst in bursts) / len(bursts)
    return Assessment(
        explains=usual,
        is_confirmed=often >= _IN_MOST_BURSTS and between <= _IN_BETWEEN * usual,
        evidence=[
            case.seen(f"{len(bursts)} bursts of {comm} on core {case.core}, {told(period_s)}", "samples", case.core),
            case.seen(f"it has {usual:.0%} of the core in them and {between:.0%} in between", "samples", case.core),
            *suffering(case),
        ],
        would_confirm="more bursts of the same program at the same distance",
        summary=f"{who} takes core {case.core} {told(period_s)} for about {length_s:.1f} s",
        culprit=culprit,
        origin=Origin("unit", culprit.unit) if culprit and culprit.unit else Origin("process", comm),
    )


def _bursts(case: Case) -> list[Episode]:
    """All bursts of the stretch of the program whose bursts are in this incident, the one with most of them."""
    subjects = [e.subject for e in case.episodes if e.subject and e.cpu == case.core and e.table == "samples"]
    if not subjects:
        return []
    comm = max(set(subjects), key=subjects.count)
    return [e for e in case.node.episodes if e.subject == comm and e.cpu == case.core and e.table == "samples"]


def _rates(case: Case, comm: str, bursts: list[Episode]) -> tuple[list[float], float]:
    """Shares of the core's time that the program had in each burst that is looked at, and between them."""
    core = [case.core or 0]
    spans = [burst.span for burst in bursts]
    whole = case.node.stacks((spans[0][0], spans[-1][1]), core).of_task(comm)
    between = outside((spans[0][0], spans[-1][1]), spans)
    return [whole.where(core, [span]).busy_share for span in spans], whole.where(core, between).busy_share


CAUSE = Cause(
    slug="periodic-job",
    title="the same job at a steady beat",
    confirming="four bursts at a steady period, of the same program, which hardly runs in between",
    assess=assess,
    fix=(
        "find whose timer it is: systemctl list-timers, crontab -l, /etc/cron.d, the agent's interval",
        "spread it: RandomizedDelaySec or AccuracySec of the timer, a random sleep in the cron job",
        "let it give way: nice, CPUWeight of its unit, a core without network queues; or do less each time",
    ),
    verify=("the bursts are gone, or come at random: `necroscope diagnose` finds no period",),
    will_not_help=(
        WillNotHelp("looking at averages of a minute", "a second in ten is a tenth of one core and looks like nothing"),
    ),
    yields_to=frozenset({"*"}),
)
