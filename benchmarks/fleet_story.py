"""The story of the zone as a generated fleet: writes its lake, and asks all questions of it.

`scripts/bench fleet story [--keep DIR]`. 120 nodes that do not exist; the unit that leaks and its
zone are the same nodes. With `--keep` the lake stays, to be asked by hand.
"""

import argparse
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from generated_story import CLUSTER, DAY_NS, START_NS, UNIT, Story
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.lake import Lake
from necroscope.fleet.questions.change import change
from necroscope.fleet.questions.fact_changes import FactState
from necroscope.fleet.questions.next_nodes import next_nodes
from necroscope.fleet.questions.occurrences import Subject
from necroscope.fleet.questions.trial import trial
from necroscope.fleet.questions.why import why
from necroscope.model.span import Span
from necroscope.views.fleet.answers import change_to_text
from necroscope.views.fleet.next import next_to_text
from necroscope.views.fleet.why import why_to_text

TREATED_DAY = 20
RESET = Subject("event", "nic_reset")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", type=Path, metavar="DIR", help="an empty directory for the lake")
    parser.add_argument("--seed", type=int, default=1)


def run(arguments: argparse.Namespace) -> None:
    with _place(arguments.keep) as place:
        lake = Lake.open(str(place))
        story = Story(days=34, seed=arguments.seed, treated_day=TREATED_DAY).write(lake)
        begin_ns, end_ns = (START_NS + day * DAY_NS for day in (TREATED_DAY, story.days))
        before = Span(START_NS, begin_ns)
        questions = LakeQuestions(lake, end_ns)
        print(why_to_text(why(questions, RESET, before).as_json()), end="\n\n")
        print(next_to_text(next_nodes(questions, RESET, before).as_json()), end="\n\n")
        treated, untreated = (
            {(CLUSTER, node): begin_ns for node in side}
            for side in (story.treated, story.carriers - story.treated)
        )
        print(trial(questions, RESET, treated, untreated, end_ns).as_json()["summary"], end="\n\n")
        state = FactState("unit_file", UNIT, "disabled")
        found = change(questions, state, RESET, Span(START_NS, end_ns))
        print(change_to_text(found.as_json()))


@contextlib.contextmanager
def _place(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory() as work:
        yield Path(work)
