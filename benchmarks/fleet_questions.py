"""Questions over 30 days of 1,000 nodes, and the flame graph of their last hour: seconds of each,
in a process that is up.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from generated_lake import DAY_NS, START_NS, event_lake, stack_hour
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.lake import Lake
from necroscope.fleet.questions.answer import answer

MOST_SECONDS = 1.0
MOST_SECONDS_OF_FLAME = 15.0
_QUESTIONS: dict[str, dict[str, str]] = {
    "nodes": {},
    "incidents": {},
    "timeline": {"event": "nic_reset", "by": "zone"},
    "why": {"event": "nic_reset"},
    "change": {"fact": "unit_file:leaky.service=disabled", "event": "nic_reset"},
    "diff": {"a": "zone=a", "b": "zone=b"},
    "flame": {"where": "zone=a", "baseline": "not zone=a", "since": "-1h"},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--events", type=int, default=20, help="of a node and day")
    parser.add_argument("--pulses", type=int, default=288, help="of a node and day")
    parser.add_argument(
        "--stacks", type=int, default=200, help="of a node and minute of the last hour"
    )


def run(arguments: argparse.Namespace) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as work:
        event_lake(Path(work), arguments.nodes, arguments.days, arguments.events, arguments.pulses)
        stack_hour(Path(work), arguments.nodes, arguments.stacks, arguments.days - 1)
        span = {"since": "2026-04-01"}
        questions = LakeQuestions(Lake.open(work), START_NS + arguments.days * DAY_NS)
        rows = [["question", "median of 5", "slowest", "must be"]]
        for name, words in _QUESTIONS.items():
            most = MOST_SECONDS_OF_FLAME if name == "flame" else MOST_SECONDS
            seconds = [_seconds(questions, name, {**span, **words}) for _ in range(5)]
            rows.append(
                [
                    name,
                    f"{statistics.median(seconds):.2f} s",
                    f"{max(seconds):.2f} s",
                    f"< {most:g} s",
                ]
            )
    events = arguments.nodes * arguments.days * arguments.events
    stacks = arguments.nodes * 60 * arguments.stacks
    print(
        f"{events:,} events, {arguments.nodes * arguments.days * arguments.pulses:,} pulses,"
        f" {stacks:,} stacks"
    )
    for row in rows:
        print(" | ".join(row))
    return rows


def _seconds(questions: LakeQuestions, name: str, words: dict[str, str]) -> float:
    started = time.monotonic()
    answer(name, questions, words)
    return time.monotonic() - started
