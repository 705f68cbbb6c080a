"""Three ways to answer without thinking."""

from pathlib import Path
from typing import Any

from tests.drawn_recording import draw

from necroscope.lab.score.baselines import (
    HOTTEST_SYMBOL,
    MAJORITY,
    MOST_CPU,
    Sighting,
    look,
    outcomes,
)
from necroscope.lab.score.guess import Guess


def label(cause: str | None, core: int = 0) -> dict[str, Any]:
    return {"cause": cause, "core": core, "mode": "system", "culprit": None, "origin": None}


def test_the_process_with_the_most_samples_and_the_function_with_the_most(tmp_path: Path) -> None:
    recording = draw(
        tmp_path / "recording",
        """
        comm:  sh    sh    sh    worker        worker
        pid:   7     7     7     9             9
        cpu:   0     0     1     1             1
               main  main  main  main          main
               a     b     c     spin@kernel   spin@kernel
        """,
    )
    seen = look(recording)
    assert (seen.process.comm, seen.process.pid, seen.process.core, seen.process.mode) == (
        "sh",
        7,
        0,
        "user",
    )
    assert (seen.symbol, seen.function.comm, seen.function.core, seen.function.mode) == (
        "spin",
        "worker",
        1,
        "system",
    )


def test_an_empty_recording_shows_nothing(tmp_path: Path) -> None:
    seen = look(draw(tmp_path / "recording", "", until=3))
    assert seen == Sighting(Guess(), Guess(), None)


def test_what_the_hottest_symbol_means_is_known_from_the_other_recordings_only() -> None:
    labels = [label("a"), label("a"), label("b"), label(None)]
    seen = [
        Sighting(Guess(), Guess(0, "system"), symbol) for symbol in ("walk", "walk", "spin", "walk")
    ]
    found = [outcome.guesses[0] for outcome in outcomes(labels, seen)[HOTTEST_SYMBOL]]
    assert (
        found[3].cause == "a"
    )  # the healthy one is named: two others with that symbol were incidents
    assert found[2].cause is None  # nobody else has it
    assert found[2].confidence == 0.0


def test_the_majority_is_that_of_the_others() -> None:
    labels = [label("a", 0), label("a", 0), label("b", 1)]
    seen = [Sighting(Guess(), Guess(), None)] * 3
    causes = [
        [guess.cause for guess in outcome.guesses if guess.cause]
        for outcome in outcomes(labels, seen)[MAJORITY]
    ]
    assert causes[2] == ["a"]
    assert sorted(causes[0]) == ["a", "b"]


def test_the_busiest_process_names_no_cause() -> None:
    (outcome,) = outcomes(
        [label("a")], [Sighting(Guess(1, "user", None, 1.0, "sh", 7, "sh"), Guess(), None)]
    )[MOST_CPU]
    assert not outcome.guesses[0].is_named
