"""What a cause is: a mechanism with a slug, its signature and thresholds as data, a rule that
weighs a case for it, and what to do about it.

Most mechanisms show in the same way: some functions have a large share of what runs on a core, and
a counter of the kernel rises with them. A `Signature` says which, and `Signature.match` does the
rest; the rule only adds what is particular.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.case_counters import Rate
from necroscope.analysis.evidence import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import Functions
from necroscope.analysis.report import Culprit, Evidence, Origin, WalkedState, WillNotHelp
from necroscope.analysis.stacks import Stacks
from necroscope.analysis.thresholds import NO_THRESHOLDS, Threshold, Thresholds

TRIPLE: Final = Threshold(3.0, "a rate that only doubles may be the day's own swing")


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
    walked: WalkedState | None = None


@dataclass(frozen=True, slots=True)
class Rise:
    """A counter that rises with the mechanism: to `times` its quiet rate and at least `per_s`.

    `more_per_s`: or by this many, because on a large machine others keep the sum high all day, and
    what one core adds hardly doubles it. A line of /proc/interrupts is a counter of `interrupts`.
    `plus` are counters that are added to it.
    """

    table: str
    counter: str
    per_s: Threshold
    times: Threshold = TRIPLE
    more_per_s: Threshold | None = None
    plus: tuple[str, ...] = ()

    @property
    def limits(self) -> dict[str, Threshold]:
        found = {f"{self.counter}_per_s": self.per_s, f"{self.counter}_times": self.times}
        return found | ({f"{self.counter}_more_per_s": self.more_per_s} if self.more_per_s else {})

    def rate(self, case: Case) -> Rate:
        if self.table == "interrupts":
            return case.counters.interrupts(self.counter)
        return case.counters.rate(self.table, self.counter, *self.plus)

    def is_seen(self, case: Case) -> bool:
        rate, limits = self.rate(case), case.limits
        return rate.grew(limits[f"{self.counter}_times"], limits[f"{self.counter}_per_s"]) or (
            self.more_per_s is not None and rate.rise >= limits[f"{self.counter}_more_per_s"]
        )


@dataclass(frozen=True, slots=True)
class Signature:
    """The functions of a mechanism, as `words` call them, and how much of what runs they must have.

    Below `least` there is nothing to weigh; from `confirmed` on, with one of `rises` if there are
    any, it is confirmed. `inside`: only below one of these. `without`: a sample with one of these
    is another mechanism's. `also`: work that comes with it, and is explained by it.
    """

    functions: Functions
    words: str
    least: Threshold
    confirmed: Threshold
    inside: Functions | None = None
    without: Functions | None = None
    also: Functions | None = None
    rises: tuple[Rise, ...] = ()

    @property
    def limits(self) -> Thresholds:
        rises = {name: limit for rise in self.rises for name, limit in rise.limits.items()}
        return Thresholds(least=self.least, confirmed=self.confirmed, **rises)

    def match(self, case: Case) -> "Match | None":
        """None where hardly anything of it ran."""
        now = case.samples.now
        own = now if self.without is None else now.without(self.without)
        of_all = own.total / now.total if now.total else 0.0
        share = own.share(self.functions, self.inside) * of_all
        if share < case.limits.least:
            return None
        wide = self.functions if self.also is None else self.functions | self.also
        explains = own.share(wide, self.inside) * of_all if self.also else share
        return Match(case, self, own, share, explains, case.culprit(self.functions, self.inside))


@dataclass(frozen=True)
class Match:
    """A signature that was found in a case: `share` of what ran was in its functions."""

    case: Case
    signature: Signature
    own: Stacks
    share: float
    explains: float
    culprit: Culprit | None

    @property
    def who(self) -> str:
        return (self.culprit.comm if self.culprit else None) or "a task"

    @cached_property
    def has_risen(self) -> bool:
        rises = self.signature.rises
        return not rises or any(rise.is_seen(self.case) for rise in rises)

    def assessment(
        self,
        summary: str,
        origin: Origin | None,
        evidence: Sequence[Evidence] = (),
        fix: Sequence[str] = (),
        is_confirmed: bool = True,
        against: Sequence[Evidence] = (),
        doubt: float = 0.0,
        walked: WalkedState | None = None,
    ) -> Assessment:
        """`is_confirmed` is what the signature does not say: confirmed only if both hold."""
        case, signature = self.case, self.signature
        is_much = self.share >= case.limits.confirmed
        return Assessment(
            explains=self.explains,
            is_confirmed=is_much and is_confirmed and self.has_risen,
            evidence=[
                in_samples(case, signature.functions, signature.words, signature.inside),
                *evidence,
                *what_held_the_core(case),
                *suffering(case),
            ],
            against=against,
            doubt=doubt,
            summary=summary,
            culprit=self.culprit,
            origin=origin,
            fix=fix,
            walked=walked,
        )


@dataclass(frozen=True)
class Cause:
    """`fix`, `verify` and `will_not_help` are what holds in every case; an assessment may add what
    names this one's objects. `would_confirm` is what to look at where the confirming signal was not
    seen.

    `yields_to` names causes that say the same more exactly: where one of them is confirmed and
    explains as much, this one is only an alternative. `"*"` yields to all but those that do so as
    well, unless they are named as well. `ordinary_s`: for this long it is ordinary work.
    """

    slug: str
    title: str
    confirming: str
    assess: Callable[[Case], Assessment | None]
    fix: Sequence[str]
    verify: Sequence[str]
    will_not_help: Sequence[WillNotHelp] = ()
    would_confirm: str = ""
    yields_to: frozenset[str] = frozenset()
    ordinary_s: float = 0.0
    signature: Signature | None = None
    thresholds: Thresholds = NO_THRESHOLDS

    @cached_property
    def limits(self) -> Thresholds:
        """All that decide, those of the signature first."""
        return (self.signature.limits if self.signature else NO_THRESHOLDS) | self.thresholds
