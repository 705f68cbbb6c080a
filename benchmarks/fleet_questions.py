"""Questions over 30 days of 1,000 nodes: seconds of each, in a process that is up, as a collector's is."""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from generated_lake import DAY_NS, START_NS, event_lake
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.lake import Lake
from necroscope.fleet.questions.asked import answer

MOST_SECONDS = 1.0
_QUESTIONS: dict[str, dict[str, str]] = {
    "nodes": {},
    "incidents": {},
    "timeline": {"event": "nic_reset", "by": "zone"},
    "why": {"event": "nic_reset"},
    "change": {"fact": "unit_file:leaky.service=disabled", "event": "nic_reset"},
    "diff": {"a": "zone=a", "b": "zone=b"},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--events", type=int, default=20, help="of a node and day")
    parser.add_argument("--pulses", type=int, default=288, help="of a node and day")


def run(arguments: argparse.Namespace) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as work:
        event_lake(Path(work), arguments.nodes, arguments.days, arguments.events, arguments.pulses)
        span = {"since": "2026-04-01"}
        questions = LakeQuestions(Lake.open(work), START_NS + arguments.days * DAY_NS)
        rows = [["question", "median of 5", "slowest", "must be"]]
        for name, words in _QUESTIONS.items():
            seconds = [_seconds(questions, name, {**span, **words}) for _ in range(5)]
            rows.append([name, f"{statistics.median(seconds):.2f} s", f"{max(seconds):.2f} s", f"< {MOST_SECONDS:g} s"])
    events = arguments.nodes * arguments.days * arguments.events
    print(f"{events:,} events, {arguments.nodes * arguments.days * arguments.pulses:,} pulses")
    for row in rows:
        print(" | ".join(row))
    return rows


def _seconds(questions: LakeQuestions, name: str, words: dict[str, str]) -> float:
    started = time.monotonic()
    answer(name, questions, words)
    return time.monotonic() - started
