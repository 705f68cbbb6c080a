"""What a diagnosis says, as a ranked list of guesses; and whether a guess is right, on three
levels.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from necroscope.model.units import NS_PER_S, parse_moment_ns

UNKNOWN: Final = "unknown"
# From here on a cause counts as named.
NAMED: Final = 0.5
# An incident may begin a little before its cause was provoked, for counters are read once per
# second, and end a little after.
_MARGIN_NS: Final = 3 * NS_PER_S
# A container is known by its name, its id, or the first twelve digits of that; a cgroup by its path
# or a part of it.
_SHORTEST_PART: Final = 6

Label = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Guess:
    """One answer; what it does not say is None. A cause that was weighed and lost is an answer, but
    names nothing.
    """

    core: int | None = None
    mode: str | None = None
    cause: str | None = None
    confidence: float = 0.0
    comm: str | None = None
    pid: int | None = None
    origin: str | None = None
    has_won: bool = True

    @property
    def is_named(self) -> bool:
        return self.has_won and self.cause is not None and self.confidence >= NAMED


@dataclass(frozen=True, slots=True)
class ScoreLevel:
    """`answer` is what a guess says on this level, None if nothing; `is_asked` whether the label
    knows the truth of it.
    """

    name: str
    answer: Callable[[Guess], Hashable | None]
    is_asked: Callable[[Label], bool]
    is_right: Callable[[Guess, Label], bool]


def guesses(report: dict[str, Any], label: Label) -> list[Guess]:
    """Of `diagnose --json`, about the time of the label (all of the recording if nothing was
    wrong), the surest first.

    The causes that were weighed and lost come after those that won.
    """
    shown = [
        incident
        for incident in report["incidents"]
        if label["cause"] is None
        or is_in_time(
            parse_moment_ns(incident["from"], 0), parse_moment_ns(incident["to"], 0), label
        )
    ]
    won = [_guess(incident) for incident in shown]
    lost = [
        replace(guess, cause=other["cause"], confidence=other["confidence"], has_won=False)
        for guess, incident in zip(won, shown, strict=True)
        for other in incident["alternatives"]
    ]
    return sorted([*won, *lost], key=lambda guess: (not guess.has_won, -guess.confidence))


def rank(level: ScoreLevel, ranked: Iterable[Guess], label: Label) -> int | None:
    """At which place, counted from 1, the right answer stands; each answer takes one place however
    often it is given.
    """
    seen: set[Hashable] = set()
    for guess in ranked:
        answer = level.answer(guess)
        if answer is not None:
            seen.add(answer)
            if level.is_right(guess, label):
                return len(seen)
    return None


def is_false_naming(guess: Guess, label: Label) -> bool:
    """A cause that is named although another one or nothing was provoked."""
    return (
        guess.is_named
        and guess.cause != label["cause"]
        and guess.cause not in label.get("tolerates", [])
    )


def _guess(incident: dict[str, Any]) -> Guess:
    verdict = incident["verdict"]
    culprit, origin = verdict["culprit"] or {}, verdict["origin"] or {}
    return Guess(
        incident["core"],
        incident["mode"],
        None if verdict["cause"] == UNKNOWN else verdict["cause"],
        verdict["confidence"],
        culprit.get("comm"),
        culprit.get("pid"),
        origin.get("name"),
    )


def is_in_time(from_ns: int, to_ns: int, label: Label) -> bool:
    """Whether an incident is about the time of the label."""
    since_ns, until_ns = (parse_moment_ns(label[name], 0) for name in ("from", "to"))
    return from_ns <= until_ns + _MARGIN_NS and to_ns >= since_ns - _MARGIN_NS


def _place(guess: Guess) -> Hashable | None:
    return None if guess.core is None and guess.mode is None else (guess.core, guess.mode)


def _culprit_key(guess: Guess) -> Hashable | None:
    return None if guess.comm is None and guess.origin is None else (guess.comm, guess.origin)


def _names_culprit(guess: Guess, label: Label) -> bool:
    """Both where the label knows both."""
    culprit, origin = label["culprit"], label["origin"]
    is_culprit = (
        culprit is None
        or guess.comm in (culprit["comm"], *culprit["also"])
        or _is_same_pid(guess, culprit)
    )
    is_origin = origin is None or any(
        _is_same(guess.origin, name) for name in (origin["name"], *origin["also"])
    )
    return is_culprit and is_origin


def _is_same_pid(guess: Guess, culprit: dict[str, Any]) -> bool:
    return guess.pid is not None and guess.pid == culprit["pid"]


def _is_same(said: str | None, name: str) -> bool:
    if not said:
        return False
    shorter, longer = sorted((said.casefold(), name.casefold()), key=len)
    return shorter == longer or (len(shorter) >= _SHORTEST_PART and shorter in longer)


LEVELS: Final = (
    ScoreLevel(
        "core and mode",
        _place,
        lambda label: label["core"] is not None or label["mode"] is not None,
        lambda guess, label: (guess.core, guess.mode) == (label["core"], label["mode"]),
    ),
    ScoreLevel(
        "cause",
        lambda guess: guess.cause,
        lambda label: label["cause"] is not None,
        lambda guess, label: guess.cause == label["cause"],
    ),
    ScoreLevel(
        "culprit and origin",
        _culprit_key,
        lambda label: label["culprit"] is not None or label["origin"] is not None,
        _names_culprit,
    ),
)
