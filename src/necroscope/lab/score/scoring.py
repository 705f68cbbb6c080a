"""Runs scenarios over seeds, diagnoses their recordings, and scores what was said."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from necroscope.errors import ExperimentFailed, NecroscopeError
from necroscope.lab.label import LABEL_FILE, read_label
from necroscope.lab.run import Request, Say, run
from necroscope.lab.scenario import Scenario
from necroscope.lab.score import baselines
from necroscope.lab.score.guess import LEVELS, guesses, is_false_naming, rank
from necroscope.lab.score.metrics import Score, ScoredRecording, score
from necroscope.lab.score.text import DIAGNOSIS
from necroscope.segment.recording import RECORDING_FILE

Diagnose = Callable[[Path], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Which recordings there are to be: in `directory`, one for each scenario and seed."""

    directory: Path
    scenarios: Sequence[type[Scenario]]
    seeds: int
    is_reusing: bool
    force: bool = False

    def recordings(self) -> Iterator[tuple[type[Scenario], int, Path]]:
        for seed in range(1, self.seeds + 1):
            for scenario in self.scenarios:
                yield scenario, seed, self.directory / f"{scenario.name}-{seed}"


def diagnose(recording: Path) -> dict[str, Any]:
    """What `necroscope diagnose --json` prints."""
    from necroscope.analysis import engine  # noqa: PLC0415 - the analysis is not needed to provoke
    from necroscope.store.query import Store  # noqa: PLC0415

    return engine.diagnose(Store.open(recording)).as_json()


def provoke(plan: RunPlan, say: Say) -> list[dict[str, Any]]:
    """Run what is missing; the runs that have no label, and why."""
    unlabelled = []
    for scenario, seed, directory in plan.recordings():
        if plan.is_reusing and (directory / LABEL_FILE).exists():
            continue
        say(f"— {scenario.name}, seed {seed}")
        if plan.is_reusing and (directory / RECORDING_FILE).exists():
            shutil.rmtree(directory)  # a run that came to no label
        try:
            run(scenario, Request(directory, seed=seed, force=plan.force), say)
        except ExperimentFailed as error:
            say(error.facts)
            if not (directory / LABEL_FILE).exists():
                unlabelled.append({"scenario": scenario.name, "seed": seed, "why": error.facts})
    return unlabelled


def judge(
    directories: Sequence[Path], ask: Diagnose, say: Say
) -> tuple[dict[str, Score], list[dict[str, Any]]]:
    """The scores of the diagnosis and of the baselines, and a row for each recording."""
    outcomes, sightings = [], []
    for directory in directories:
        label = read_label(directory)
        started = time.perf_counter()
        try:
            report = ask(directory)
        except NecroscopeError as error:
            say(f"no verdict on {directory.name}: {error.facts}")
            report = {"incidents": []}
        outcomes.append(
            ScoredRecording(label, guesses(report, label), time.perf_counter() - started)
        )
        sightings.append(baselines.look(directory))
    labels = [outcome.label for outcome in outcomes]
    others = {name: score(found) for name, found in baselines.outcomes(labels, sightings).items()}
    return {DIAGNOSIS: score(outcomes)} | others, [_row(outcome) for outcome in outcomes]


def _row(outcome: ScoredRecording) -> dict[str, Any]:
    label = outcome.label
    ranks = {
        level.name: rank(level, outcome.guesses, label) if level.is_asked(label) else None
        for level in LEVELS
    }
    said = [
        {"cause": guess.cause, "confidence": guess.confidence, "core": guess.core}
        for guess in outcome.guesses[:5]
    ]
    named = [
        f"{guess.cause} {guess.confidence:.2f}"
        for guess in outcome.guesses
        if guess.cause is not None
    ][:3]
    is_right = (
        ranks["cause"] == 1
        if label["cause"]
        else not any(is_false_naming(g, label) for g in outcome.guesses)
    )
    return {
        "scenario": label["scenario"],
        "seed": label["seed"],
        "cause": label["cause"],
        "is_right": is_right,
        "said": ", ".join(named),
        "ranks": ranks,
        "guesses": said,
        "seconds": round(outcome.seconds, 3),
    }
