"""`fleet why`: time and memory over 10,000 nodes x 2,000 facts, and how often it is right where the
truth is known.

`scripts/bench fleet why [--runs 200]`. The command is run as a user runs it, in a process of its
own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from generated_lake import fact_lake
from generated_story import DAY_NS, START_NS, Story
from generated_truth import UNIT, generated_origins, generated_truth
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.cohorts.decision import Decision, Separation, decide
from necroscope.fleet.cohorts.dose import Dose
from necroscope.fleet.lake import Lake
from necroscope.fleet.questions.occurrences import Subject
from necroscope.fleet.questions.why import why
from necroscope.model.span import Span

MOST_SECONDS = 1.0
MOST_BYTES = 1 << 30
LEAST_FIRST = 0.85
MOST_ERROR = 0.15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--facts", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=200, help="generated fleets of 200 nodes")
    parser.add_argument("--seed", type=int, default=1)


def run(arguments: argparse.Namespace) -> list[list[str]]:
    rows = [
        ["what", "measured", "must be"],
        *_scale(arguments.nodes, arguments.facts),
        *_truth(arguments.runs, arguments.seed),
        *_same_nodes(arguments.runs, arguments.seed),
        *_thresholds(arguments.runs, arguments.seed),
    ]
    for row in rows:
        print(" | ".join(row))
    return rows


def _scale(nodes: int, facts: int) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as work:
        fact_lake(Path(work), nodes, facts)
        costs = [_ask(Path(work)) for _ in range(5)]
    walls = sorted(cost[0] for cost in costs)
    what = f"{nodes:,} nodes x {facts:,} facts"
    return [
        [f"{what}, the whole command, median of 5", f"{walls[2]:.2f} s", f"< {MOST_SECONDS:g} s"],
        [f"{what}, slowest of 5", f"{walls[-1]:.2f} s", ""],
        [f"{what}, CPU", f"{np.median([cost[1] for cost in costs]):.2f} s", ""],
        [
            f"{what}, peak memory",
            f"{max(cost[2] for cost in costs) / (1 << 20):.0f} MiB",
            f"< {MOST_BYTES >> 20} MiB",
        ],
    ]


def _ask(lake: Path) -> tuple[float, float, int]:
    """Wall and CPU seconds and peak bytes of one question."""
    words = [
        "--event",
        "nic_reset",
        "--since",
        "2026-04-01",
        "--until",
        "2026-04-11",
        "--lake",
        str(lake),
        "--json",
    ]
    started = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-m", "necroscope", "fleet", "why", *words], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    answer = json.loads(child.stdout.read())
    _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.monotonic() - started
    child.returncode = status
    assert answer["outcome"] == "separated"
    assert answer["leaders"][0]["name"].startswith("unit_outcome leaky.service")
    return wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def _truth(runs: int, seed: int) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    odd = [decide(*generated_truth(rng)) for _ in range(runs)]
    even = [decide(*generated_truth(rng, disagree=0)) for _ in range(runs)]
    first = sum(_is_right(each) for each in odd) / runs
    named = [each for each in odd + even if each.outcome is Separation.SEPARATED]
    wrong = sum(not _is_right(each) for each in named)
    places = sum(bool(each.first and each.first.candidate.places) for each in named)
    cannot = sum(each.outcome is Separation.CANNOT_SEPARATE for each in even) / runs
    what = f"200 nodes, {runs} runs"
    return [
        [f"{what}, 20 disagree: the right fact first", f"{first:.1%}", f">= {LEAST_FIRST:.0%}"],
        [
            f"{what}, 20 disagree: named as the only one",
            f"{(len(named) - (runs - round(cannot * runs))) / runs:.1%}",
            "",
        ],
        [f"{what} of each: a wrong fact named", str(wrong), "0"],
        [f"{what} of each: a place named", str(places), "0"],
        [f"{what}, none disagrees: cannot separate", f"{cannot:.1%}", "100%"],
    ]


def _is_right(decision: Decision) -> bool:
    first = decision.first
    return first is not None and any(
        (each.kind, each.name) == UNIT for each in first.candidate.predicates
    )


def _same_nodes(runs: int, seed: int) -> list[list[str]]:
    """Unit and zone are the same nodes: only the verdicts can tell."""
    rng = np.random.default_rng(seed)
    fleets = [generated_truth(rng, disagree=0) for _ in range(runs)]
    named = {
        shuffled: [
            decision
            for fleet in fleets
            if (
                decision := decide(*fleet, generated_origins(rng, *fleet, shuffled=shuffled))
            ).outcome
            is Separation.SEPARATED
        ]
        for shuffled in (None, "nodes", "names")
    }
    right = sum(map(_is_only_right, named[None]))
    what = f"200 nodes, unit and zone the same, {runs} runs"
    return [
        [f"{what}: the right fact by mechanism", f"{right / runs:.1%}", ">= 90%"],
        [f"{what}: a wrong fact", f"{(len(named[None]) - right) / runs:.1%}", "<= 1%"],
        [f"{what}: named with verdicts of other nodes", str(len(named["nodes"])), "0"],
        [f"{what}: named with verdicts that name any fact", str(len(named["names"])), "0"],
    ]


def _is_only_right(decision: Decision) -> bool:
    first = decision.first
    return first is not None and {
        (each.kind, each.name) for each in first.candidate.predicates
    } == {UNIT}


def _thresholds(runs: int, seed: int) -> list[list[str]]:
    """Half of the fleets fail from a count on, half from an uptime on."""
    errors: list[float] = []
    first = covered = 0
    for run in range(runs):
        is_uptime = run % 2 == 1
        threshold = 6.1 if is_uptime else 58_000.0
        story = Story(nodes=60, days=20, seed=seed + run, by_uptime=is_uptime, threshold=threshold)
        truth = ("uptime_s", 6.1 * 86_400) if is_uptime else ("dead_cgroups", threshold)
        doses = _doses(story)
        first += bool(doses) and doses[0].name == truth[0]
        for dose in doses:
            if dose.name == truth[0]:
                errors.append(abs(dose.threshold / truth[1] - 1))
                covered += dose.low <= truth[1] <= dose.high
    what = f"60 nodes, {runs} runs"
    within = sum(error <= MOST_ERROR for error in errors) / runs
    return [
        [f"{what}: count and uptime told apart", f"{first / runs:.1%}", ""],
        [f"{what}: threshold within {MOST_ERROR:.0%}", f"{within:.1%}", ">= 95%"],
        [f"{what}: median error of the threshold", f"{np.median(errors):.1%}", ""],
        [f"{what}: the interval of 95 % holds the truth", f"{covered / runs:.1%}", ""],
    ]


def _doses(story: Story) -> tuple[Dose, ...]:
    with tempfile.TemporaryDirectory() as work:
        lake = Lake.open(work)
        story.write(lake)
        span = Span(START_NS, START_NS + story.days * DAY_NS)
        return why(LakeQuestions(lake, span.to_ns), Subject("event", "nic_reset"), span).doses
