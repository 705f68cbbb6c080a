"""The figures of a score, from labels and ranked guesses: pure functions."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final

from necroscope.analysis.interval import wilson
from necroscope.lab.score.guess import LEVELS, Guess, Label, ScoreLevel, is_false_naming, rank

# Below 0.5 nothing is named; of what is said with 0.8 and more at least nine in ten should be
# right.
_BINS: Final = (0.0, 0.5, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True, slots=True)
class ScoredRecording:
    """One recording: the truth, what was said about it (the surest first), and how long that
    took.
    """

    label: Label
    guesses: Sequence[Guess]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Share:
    """This many of this many."""

    hits: int
    of: int

    @property
    def value(self) -> float | None:
        return self.hits / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        return wilson(self.hits, self.of) if self.of else None

    def as_json(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        return {
            "hits": self.hits,
            "of": self.of,
            "value": _round(self.value),
            "low": _round(low),
            "high": _round(high),
        }


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of one level: how often the right answer is first, and among the first three; `macro` gives
    every cause the same weight.
    """

    first: Share
    first_three: Share
    macro_first: float | None
    macro_first_three: float | None

    def as_json(self) -> dict[str, Any]:
        return {
            "ac1": self.first.as_json() | {"macro": _round(self.macro_first)},
            "ac3": self.first_three.as_json() | {"macro": _round(self.macro_first_three)},
        }


@dataclass(frozen=True, slots=True)
class Bin:
    """Verdicts whose confidence lies here, how sure they were on average, and how many were
    right.
    """

    low: float
    high: float
    confidence: float | None
    right: Share

    def as_json(self) -> dict[str, Any]:
        return {
            "from": self.low,
            "to": self.high,
            "confidence": _round(self.confidence),
            "right": self.right.as_json(),
        }


@dataclass(frozen=True, slots=True)
class Score:
    """Of one way to answer. `levels` and `coverage` are over incidents, `false_namings` over the
    healthy and the harmless.
    """

    levels: dict[str, Accuracy]
    coverage: Share
    false_namings: Share
    calibration: list[Bin]
    median_s: float | None
    longest_s: float | None

    def as_json(self) -> dict[str, Any]:
        return {
            "levels": {name: accuracy.as_json() for name, accuracy in self.levels.items()},
            "coverage": self.coverage.as_json(),
            "false_namings": self.false_namings.as_json(),
            "calibration": [each.as_json() for each in self.calibration],
            "seconds": {"median": _round(self.median_s), "longest": _round(self.longest_s)},
        }


def score(outcomes: Sequence[ScoredRecording]) -> Score:
    incidents = [outcome for outcome in outcomes if outcome.label["cause"] is not None]
    healthy = [outcome for outcome in outcomes if outcome.label["cause"] is None]
    times_s = [outcome.seconds for outcome in outcomes]
    return Score(
        {level.name: accuracy(level, incidents) for level in LEVELS},
        _count(any(guess.is_named for guess in outcome.guesses) for outcome in incidents),
        _count(
            any(is_false_naming(guess, outcome.label) for guess in outcome.guesses)
            for outcome in healthy
        ),
        calibration(outcomes),
        median(times_s) if times_s else None,
        max(times_s, default=None),
    )


def accuracy(level: ScoreLevel, incidents: Sequence[ScoredRecording]) -> Accuracy:
    """Where the label does not know the truth of a level, the run is not asked."""
    ranks: dict[str, list[int | None]] = defaultdict(list)
    for outcome in incidents:
        if level.is_asked(outcome.label):
            ranks[outcome.label["cause"]].append(rank(level, outcome.guesses, outcome.label))

    def within(most: int) -> tuple[Share, float | None]:
        hits = {
            cause: _count(place is not None and place <= most for place in places)
            for cause, places in ranks.items()
        }
        shares = [share.hits / share.of for share in hits.values()]
        pooled = Share(
            sum(share.hits for share in hits.values()), sum(share.of for share in hits.values())
        )
        return pooled, sum(shares) / len(shares) if shares else None

    (first, macro_first), (three, macro_three) = within(1), within(3)
    return Accuracy(first, three, macro_first, macro_three)


def calibration(outcomes: Sequence[ScoredRecording]) -> list[Bin]:
    """Of the surest guess with a cause of each recording: what was said with 0.9 should be right
    nine times in ten.
    """
    surest = [(guess, outcome.label) for outcome in outcomes if (guess := _surest(outcome.guesses))]
    found = []
    for low, high in pairwise(_BINS):
        inside = [
            (g, label)
            for g, label in surest
            if low <= g.confidence < high or (high == g.confidence == _BINS[-1])
        ]
        mean = sum(g.confidence for g, _ in inside) / len(inside) if inside else None
        found.append(Bin(low, high, mean, _count(not _is_wrong(g, label) for g, label in inside)))
    return found


def _surest(ranked: Sequence[Guess]) -> Guess | None:
    """The first that won and says a cause: they come in this order."""
    return next((guess for guess in ranked if guess.has_won and guess.cause is not None), None)


def _is_wrong(guess: Guess, label: Label) -> bool:
    return guess.cause != label["cause"] and guess.cause not in label.get("tolerates", [])


def _count(answers: Iterable[bool]) -> Share:
    listed = list(answers)
    return Share(sum(listed), len(listed))


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
