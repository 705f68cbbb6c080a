"""Three ways to answer without thinking, from the same recordings: what a verdict must beat.

The process with the most CPU and the hottest function are what `top` and a profile show first. What
the hottest function means is looked up in all the other recordings of the score, and so is the
majority class: more than an engineer at a node could know.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from necroscope.lab.score.guess import Guess, Label
from necroscope.lab.score.metrics import ScoredRecording
from necroscope.stacks.samples import flags_of, numbers
from necroscope.stacks.tree import LOST
from necroscope.store.query import Store

MOST_CPU: Final = "the process with the most CPU"
HOTTEST_SYMBOL: Final = "the hottest symbol"
MAJORITY: Final = "the majority class"


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the two profiles of a recording show first; `symbol` is None where only unnamed code was
    sampled.
    """

    process: Guess
    function: Guess
    symbol: str | None


def look(recording: Path) -> Sighting:
    """At all samples of a recording."""
    store = Store.open(recording)
    window = store.samples(0, 1 << 62)
    if not window.samples.num_rows:
        return Sighting(Guess(), Guess(), None)
    names = window.frames.column("function").to_pylist()
    # A stack whose rows are damaged has no innermost frame.
    innermost = np.append(numbers(window.stacks, "frame"), LOST)[numbers(window.samples, "stack")]
    is_kernel = np.append(flags_of(window.frames.column("kind"), "kernel".__eq__), False)[innermost]
    symbols = np.array([*names, None], dtype=object)[innermost]
    return Sighting(
        _most_cpu(window.samples, is_kernel),
        *_hottest(window.samples, is_kernel, symbols),
    )


def _most_cpu(samples: pa.Table, is_kernel: np.ndarray) -> Guess:
    processes = Counter(
        zip(samples.column("pid").to_pylist(), samples.column("comm").to_pylist(), strict=True)
    )
    (pid, comm), _ = processes.most_common(1)[0]
    return _guess(samples, samples.column("pid").to_numpy() == pid, is_kernel, pid, comm)


def _hottest(
    samples: pa.Table, is_kernel: np.ndarray, symbols: np.ndarray
) -> tuple[Guess, str | None]:
    named = Counter(symbol for symbol in symbols if symbol is not None)
    if not named:
        return Guess(), None
    symbol = named.most_common(1)[0][0]
    is_there = symbols == symbol
    processes = (
        np.array(samples.column("pid").to_pylist())[is_there],
        np.array(samples.column("comm").to_pylist())[is_there],
    )
    (pid, comm), _ = Counter(zip(*(each.tolist() for each in processes), strict=True)).most_common(
        1
    )[0]
    return _guess(samples, is_there, is_kernel, pid, comm), symbol


def _guess(
    samples: pa.Table, chosen: np.ndarray, is_kernel: np.ndarray, pid: int, comm: str
) -> Guess:
    """The core where most of these samples are, and whether they are in the kernel."""
    core = Counter(samples.column("cpu").to_numpy()[chosen].tolist()).most_common(1)[0][0]
    mode = "system" if is_kernel[chosen].mean() >= 0.5 else "user"
    return Guess(core, mode, None, 1.0, comm, pid, comm)


def outcomes(
    labels: Sequence[Label], sightings: Sequence[Sighting]
) -> dict[str, list[ScoredRecording]]:
    """The answers of the three for each recording, of which the label is known for all the others
    only.
    """
    found: dict[str, list[ScoredRecording]] = {MOST_CPU: [], HOTTEST_SYMBOL: [], MAJORITY: []}
    for i, (label, seen) in enumerate(zip(labels, sightings, strict=True)):
        others = [
            (other, sighting)
            for j, (other, sighting) in enumerate(zip(labels, sightings, strict=True))
            if j != i
        ]
        alike = [
            other
            for other, sighting in others
            if seen.symbol is not None and sighting.symbol == seen.symbol
        ]
        found[MOST_CPU].append(ScoredRecording(label, [seen.process]))
        found[HOTTEST_SYMBOL].append(
            ScoredRecording(
                label, [_with_cause(seen.function, _usual([other["cause"] for other in alike]))]
            )
        )
        found[MAJORITY].append(ScoredRecording(label, _majority([other for other, _ in others])))
    return found


def _majority(others: Sequence[Label]) -> list[Guess]:
    wrong = [label for label in others if label["cause"] is not None]
    places = Counter((label["core"], label["mode"]) for label in wrong).most_common(3)
    causes = Counter(label["cause"] for label in wrong).most_common(3)
    share = len(wrong) / len(others) if others else 0.0
    return [Guess(core, mode) for (core, mode), _ in places] + [
        Guess(cause=cause, confidence=share) for cause, _ in causes
    ]


def _with_cause(guess: Guess, cause: str | None) -> Guess:
    return Guess(
        guess.core, guess.mode, cause, 1.0 if cause else 0.0, guess.comm, guess.pid, guess.origin
    )


def _usual(causes: Sequence[str | None]) -> str | None:
    return Counter(causes).most_common(1)[0][0] if causes else None
