"""What a cause is: a mechanism with a slug, a rule that weighs a case for it, and what to do about
it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from necroscope.analysis.case import Case
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp


@dataclass(frozen=True, slots=True)
class Assessment:
    """What speaks for and against one cause in one case.

    `explains` is the share of the incident that the mechanism accounts for, 0 to 1: mostly the
    share of the samples on the core, else of the symptom. `is_confirmed`: its confirming signal was
    seen; without it the cause is never named. `doubt`, 0 to 1, is how much the evidence against
    weighs.
    """

    explains: float
    is_confirmed: bool
    evidence: Sequence[Evidence] = ()
    against: Sequence[Evidence] = ()
    doubt: float = 0.0
    would_confirm: str = ""
    summary: str = ""
    culprit: Culprit | None = None
    origin: Origin | None = None
    fix: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """`fix`, `verify` and `will_not_help` are what holds in every case; an assessment may add what
    names this one's objects.

    `yields_to` names causes that say the same more exactly: where one of them is confirmed and
    explains as much, this one is only an alternative. `"*"` yields to all but those that do so as
    well, unless they are named besides.
    """

    slug: str
    title: str
    confirming: str
    assess: Callable[[Case], Assessment | None]
    fix: Sequence[str]
    verify: Sequence[str]
    will_not_help: Sequence[WillNotHelp] = ()
    yields_to: frozenset[str] = field(default=frozenset())
    ordinary_s: float = 0.0
