"""From `diagnose --json` to ranked guesses, and whether they are right."""

from typing import Any

import pytest

from necroscope.lab.score.guess import LEVELS, Guess, guesses, is_false_naming, rank

PLACE, CAUSE, WHO = LEVELS


def label(**changes: Any) -> dict[str, Any]:
    return {
        "scenario": "x",
        "core": 1,
        "mode": "system",
        "cause": "rt-hog",
        "culprit": {"comm": "loop", "pid": 7, "cgroup": None, "also": ["loop-2"]},
        "origin": {"kind": "container", "name": "web", "also": ["0123456789abcdef0123"]},
        "from": "2026-01-01T00:00:10.000Z",
        "to": "2026-01-01T00:00:30.000Z",
        "seed": 1,
    } | changes


def incident(
    cause: str,
    confidence: float,
    *,
    at: int = 12,
    core: int = 1,
    alternatives: tuple[tuple[str, float], ...] = (),
) -> dict[str, Any]:
    return {
        "from": f"2026-01-01T00:00:{at:02d}.000Z",
        "to": f"2026-01-01T00:00:{at + 5:02d}.000Z",
        "core": core,
        "mode": "system",
        "verdict": {
            "cause": cause,
            "confidence": confidence,
            "culprit": {"comm": "loop", "pid": 7},
            "origin": {"kind": "container", "name": "0123456789ab"},
        },
        "alternatives": [{"cause": other, "confidence": sure} for other, sure in alternatives],
    }


def test_the_surest_comes_first_and_what_lost_comes_last() -> None:
    report = {"incidents": [incident("a", 0.6, alternatives=(("b", 0.9),)), incident("c", 0.8)]}
    assert [guess.cause for guess in guesses(report, label())] == ["c", "a", "b"]
    assert [guess.is_named for guess in guesses(report, label())] == [True, True, False]


def test_what_happened_at_another_time_is_no_answer() -> None:
    report = {
        "incidents": [
            incident("early", 0.9, at=1),
            incident("late", 0.9, at=40),
            incident("now", 0.6, at=8),
        ]
    }
    assert [guess.cause for guess in guesses(report, label())] == ["now"]


def test_on_a_healthy_recording_all_of_it_counts() -> None:
    report = {"incidents": [incident("early", 0.9, at=1), incident("late", 0.9, at=40)]}
    assert len(guesses(report, label(cause=None))) == 2


def test_unknown_names_the_place_but_no_cause() -> None:
    (guess,) = guesses({"incidents": [incident("unknown", 0.3)]}, label())
    assert (guess.cause, guess.core, guess.comm) == (None, 1, "loop")
    assert rank(CAUSE, [guess], label()) is None
    assert rank(PLACE, [guess], label()) == 1


def test_an_answer_takes_one_place_however_often_it_is_given() -> None:
    ranked = [Guess(cause="a"), Guess(cause="a", core=3), Guess(), Guess(cause="rt-hog")]
    assert rank(CAUSE, ranked, label()) == 2


def test_core_and_mode_must_both_be_right() -> None:
    assert rank(PLACE, [Guess(1, "user"), Guess(0, "system"), Guess(1, "system")], label()) == 3


@pytest.mark.parametrize("origin", ["web", "WEB", "0123456789ab", "0123456789abcdef0123"])
@pytest.mark.parametrize(
    "who", [{"comm": "loop"}, {"comm": "loop-2"}, {"comm": "renamed", "pid": 7}]
)
def test_culprit_and_origin_have_several_right_names(origin: str, who: dict[str, Any]) -> None:
    assert rank(WHO, [Guess(origin=origin, **who)], label()) == 1


@pytest.mark.parametrize(
    "guess",
    [Guess(comm="loop"), Guess(comm="other", origin="web"), Guess(comm="loop", origin="we")],
)
def test_one_of_both_is_not_enough(guess: Guess) -> None:
    assert rank(WHO, [guess], label()) is None


def test_a_level_without_truth_is_not_asked() -> None:
    assert not PLACE.is_asked(label(core=None, mode=None))
    assert PLACE.is_asked(label(core=0))
    assert not WHO.is_asked(label(culprit=None, origin=None))


def test_a_false_naming_is_sure_of_another_cause() -> None:
    assert is_false_naming(Guess(cause="softirq-storm", confidence=0.5), label())
    assert not is_false_naming(Guess(cause="softirq-storm", confidence=0.49), label())
    assert not is_false_naming(Guess(cause="rt-hog", confidence=0.9), label())
    assert not is_false_naming(
        Guess(cause="softirq-storm", confidence=0.9), label(tolerates=["softirq-storm"])
    )
    assert not is_false_naming(Guess(cause=None, confidence=0.9), label(cause=None))
    assert not is_false_naming(Guess(cause="softirq-storm", confidence=0.9, has_won=False), label())
