"""No mechanism was found, or none with its confirming signal: then all that is known is said.

Signature: something was held or waited, and no other cause explains it.
Confirming signal: none; a cause is never guessed.
Source: the recording itself.
"""

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence_texts import suffering, what_held_the_core
from necroscope.analysis.periodicity import told
from necroscope.analysis.report import Evidence
from necroscope.analysis.waits import lock_wait


def assess(case: Case) -> Assessment:
    """The core, the mode, the process, its path and its period."""
    culprit = case.culprit()
    held = what_held_the_core(case)
    evidence = [*held, *_paths(case), *_wait(case), *suffering(case)]
    who = f" by {culprit.comm}" if culprit else ""
    place = "the node" if case.core is None else f"core {case.core}"
    how = f"was held in {case.mode} mode{who}" if case.mode else "was in trouble"
    beat = f", {told(case.period_s)}" if case.period_s else ""
    path = f" in {culprit.path[-1]}" if culprit and culprit.path else ""
    return Assessment(
        explains=0.0,
        is_confirmed=False,
        evidence=evidence,
        culprit=culprit,
        summary=f"{place} {how}{path} for {case.seconds:.1f} s{beat}; no known mechanism explains it",
    )


def _paths(case: Case) -> list[Evidence]:
    """What is new on the core, and what it displaced."""
    found = [
        case.seen(
            f"{' > '.join(change.path[-4:])}: {change.now:.0%} of the time, {change.before:.0%} before", "samples", case.core
        )
        for change in case.differential.grown
    ]
    gone = [change for change in case.differential.shrunk if change.now < 0.1 * change.before]
    return [*found, *(case.seen(f"{' > '.join(change.path[-4:])} vanished", "samples", case.core) for change in gone[:1])]


def _wait(case: Case) -> list[Evidence]:
    """A wait is not a cause, but says what the lock is of and who has it."""
    wait = lock_wait(case, least=0.2)
    if wait is None:
        return []
    holder = f"; {wait.holders[0].comm} runs there without waiting" if wait.holders else ""
    text = f"{wait.share:.0%} of what ran waited for a lock, mostly for {wait.wanted_for}{holder}"
    return [case.seen(text, "samples", case.core)]


CAUSE = Cause(
    slug="unknown",
    title="no known mechanism",
    confirming="none: a cause is never guessed",
    assess=assess,
    fix=("look at the flame graph of this window: `necroscope flame DIR --at TIME --cpu CORE`",),
    verify=("the episode does not come again",),
)
