"""A stakeout on several nodes at once: each node runs the job again and again under its own
recorder; of two variants it runs pairs, in an order by lot. What was caught comes home.
"""

import json
import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from necroscope.analysis.interval import wilson
from necroscope.errors import NecroscopeError, RecordingError
from necroscope.model.names import clean
from necroscope.stakeout.comparison import A, B, VariantComparison, compare
from necroscope.stakeout.outcome import FAILURE
from necroscope.stakeout.remote_run import Remote, RemoteError
from necroscope.stakeout.stakeout import SUMMARY

# A node that cannot be reached is left out after this many tries.
_TRIES: Final = 3
_AGAIN_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class NodeRun:
    """`is_well` is None for a run that was stopped; `kept` is where its catches are."""

    node: str
    number: int
    variant: str
    is_well: bool | None
    caught: tuple[str, ...]
    kept: str | None = None

    def as_json(self) -> dict[str, Any]:
        ended = "stopped" if self.is_well is None else "succeeded" if self.is_well else "failed"
        return {
            "node": self.node,
            "run": self.number,
            "variant": self.variant,
            "outcome": ended,
            "caught": list(self.caught),
            "kept": self.kept,
        }


@dataclass(slots=True)
class NodesOutcome:
    """Grows while it lasts. `lost` are nodes that could not be used, and why."""

    runs: list[NodeRun] = field(default_factory=list)
    pairs: list[tuple[bool, bool]] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)
    is_compared: bool = False
    ended: str = ""

    @property
    def comparison(self) -> VariantComparison | None:
        return compare(self.pairs) if self.is_compared else None

    @property
    def caught(self) -> list[NodeRun]:
        return [run for run in self.runs if run.caught]

    @property
    def failures(self) -> int:
        return sum(run.is_well is False for run in self.runs)

    def as_json(self) -> dict[str, Any]:
        ended = [run for run in self.runs if run.is_well is not None]
        well = sum(bool(run.is_well) for run in ended)
        comparison = self.comparison
        return {
            "ended": self.ended,
            "runs": [run.as_json() for run in self.runs],
            "lost": self.lost,
            "success_rate": {
                "successes": well,
                "runs": len(ended),
                "share": well / len(ended) if ended else None,
                "interval": wilson(well, len(ended)),
            },
            "comparison": None if comparison is None else comparison.as_json(),
        }


@dataclass(slots=True)
class StakeoutOverNodes:
    """`jobs` are one command, or two variants of it. Without `counts_all` the first catch ends it;
    two variants are run until one of them is known to be better.
    """

    directory: Path
    nodes: Sequence[str]
    jobs: Sequence[Sequence[str]]
    until: Sequence[str]
    remote: Remote
    limit_s: float | None = None
    repeat: int | None = None
    counts_all: bool = False
    seed: int = 0
    clock: Callable[[], float] = time.monotonic
    outcome: NodesOutcome = field(default_factory=NodesOutcome)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)
    _started: int = 0
    _began_s: float = 0.0

    def stop(self) -> None:
        """Safe in a signal handler; runs that are under way end first."""
        self.outcome.ended = self.outcome.ended or "interrupted"
        self._over.set()

    def run(self) -> NodesOutcome:
        self.remote.check()
        if self.directory.exists() and any(self.directory.iterdir()):
            raise RecordingError(
                f"{self.directory} is not empty",
                "a stakeout keeps one experiment: give a new directory",
            )
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.outcome.is_compared = len(self.jobs) > 1
        self._began_s = self.clock()
        with ThreadPoolExecutor(len(self.nodes), "node") as threads:
            list(threads.map(self._follow, self.nodes))
        if not self.outcome.ended:
            self.outcome.ended = (
                "all runs are done" if self.outcome.runs else "no node could be used"
            )
        self._write()
        return self.outcome

    def _follow(self, node: str) -> None:
        """Rounds on one node: a run, or a pair in an order by lot."""
        lot = random.Random(f"{self.seed} {node}")
        failed = 0
        while (number := self._next()) is not None:
            order = [A, B] if self.outcome.is_compared else [A]
            lot.shuffle(order)
            try:
                ended = {variant: self._one(node, number, variant) for variant in order}
                failed = 0
            except NecroscopeError as error:
                failed += 1
                if failed >= _TRIES:
                    self._lose(node, error)
                    return
                self._over.wait(_AGAIN_S)
                continue
            self._take(ended)

    def _next(self) -> int | None:
        with self._lock:
            is_late = self.limit_s is not None and self.clock() - self._began_s >= self.limit_s
            is_done = self.repeat is not None and self._started >= self.repeat
            if is_late and not self.outcome.ended:
                self.outcome.ended = "the time is over"
            if is_late or is_done or self._over.is_set():
                return None
            self._started += 1
            return self._started

    def _one(self, node: str, number: int, variant: str) -> NodeRun:
        name = f"{self.directory.name}-{os.getpid()}-{number:04}-{variant}"
        job = self.jobs[variant == B]
        summary = self.remote.run(node, name, self.until, job)
        ends = [str(run.get("outcome")) for run in summary["runs"] if isinstance(run, dict)]
        is_well = "failed" not in ends if {"failed", "succeeded"} & set(ends) else None
        kinds = {str(one.get("kind")) for one in summary["caught"] if isinstance(one, dict)}
        if is_well is False and FAILURE in self.until:
            kinds.add(FAILURE)
        kept = None
        if kinds:
            kept = f"{clean(node).replace('/', '_')}/{number:04}-{variant}"
            self.remote.bring_home(node, name, self.directory / kept)
        self.remote.forget(node, name)
        return NodeRun(node, number, variant, is_well, tuple(sorted(map(clean, kinds))), kept)

    def _take(self, ended: dict[str, NodeRun]) -> None:
        with self._lock:
            outcome = self.outcome
            outcome.runs += [ended[variant] for variant in sorted(ended)]
            if outcome.is_compared:
                a, b = ended[A].is_well, ended[B].is_well
                if a is not None and b is not None:
                    outcome.pairs.append((a, b))
                comparison = outcome.comparison
                if comparison is not None and comparison.better is not None:
                    outcome.ended = outcome.ended or comparison.words
                    self._over.set()
            elif outcome.caught and not self.counts_all:
                last = outcome.caught[-1]
                outcome.ended = outcome.ended or f"caught {', '.join(last.caught)} on {last.node}"
                self._over.set()
            self._write()

    def _lose(self, node: str, error: NecroscopeError) -> None:
        with self._lock:
            facts = error.facts if isinstance(error, RemoteError) else str(error)
            self.outcome.lost[node] = clean(facts, 300)

    def _write(self) -> None:
        """After each round, whole or not at all."""
        summary = {
            "commands": [list(job) for job in self.jobs],
            "nodes": list(self.nodes),
            "until": list(self.until),
            **self.outcome.as_json(),
        }
        new = self.directory / f"{SUMMARY}.new"
        new.write_text(json.dumps(summary, indent=1))
        new.rename(self.directory / SUMMARY)
