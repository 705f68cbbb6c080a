"""The same job at the same beat: a timer, a cron job, an agent's round.

Signature: bursts on a core at equal distances, always of a program of the same name, mostly of another process each time; between
them it does nothing. The work itself is ordinary.
Confirming signal: four bursts or more at a steady period, and the same program has most of the core in most of them, and hardly
runs in between.
Source: cron and systemd timers that fire at the same second everywhere (systemd.timer, RandomizedDelaySec); the EKS node
monitoring agent reads the cron log for it.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import Span, outside
from necroscope.analysis.evidence_texts import suffering, what_held_the_core
from necroscope.analysis.periodicity import told
from necroscope.analysis.report import Culprit, Origin, WillNotHelp
from necroscope.analysis.stacks import Stacks

_MOST: Final = 0.5
_IN_MOST_BURSTS: Final = 0.7
_IN_BETWEEN: Final = 0.25


def assess(case: Case) -> Assessment | None:
    if case.core is None or case.period_s is None or not case.now.tasks():
        return None
    top = case.now.tasks()[0]
    if top.share < _MOST:
        return None
    in_bursts, between = _rates(case, top.comm)
    often = sum(rate >= _MOST * max(in_bursts) for rate in in_bursts) / len(in_bursts)
    is_its_own = between <= _IN_BETWEEN * (sum(in_bursts) / len(in_bursts))
    culprit = case.culprit() or Culprit(top.comm)
    who = f"{top.comm} (another process each time)" if top.pid is None else top.comm
    return Assessment(
        explains=top.share,
        is_confirmed=often >= _IN_MOST_BURSTS and is_its_own,
        evidence=[
            case.seen(f"bursts on core {case.core} come {told(case.period_s)}", "cores", case.core),
            case.seen(f"{who} has {top.share:.0%} of them, and is in {often:.0%} of those looked at", "samples", case.core),
            case.seen(f"between them it has {between:.0%} of the core", "samples", case.core),
            *what_held_the_core(case)[:1],
            *suffering(case),
        ],
        would_confirm="more bursts of the same program at the same distance",
        summary=f"{who} takes core {case.core} {told(case.period_s)} for about {_length_s(case):.1f} s",
        culprit=culprit,
        origin=Origin("unit", culprit.unit) if culprit.unit else Origin("process", top.comm),
    )


def _rates(case: Case, comm: str) -> tuple[list[float], float]:
    """Shares of the core's time that the program had in each burst that is looked at, and between them."""
    spans = case.spans
    whole = case.node.stacks((spans[0][0], spans[-1][1]), [case.core or 0]).of_task(comm)
    between = outside((spans[0][0], spans[-1][1]), spans)
    return [_share(whole, [span], case) for span in spans], _share(whole, between, case) if between else 0.0


def _share(stacks: Stacks, spans: list[Span], case: Case) -> float:
    return stacks.where([case.core or 0], spans).busy_share


def _length_s(case: Case) -> float:
    return case.seconds / max(1, len(case.spans))


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
