"""A generated fleet in a lake: through the protocol, with evidence, and with an answer that is
known.
"""

import json
from pathlib import Path

import pytest
from tests.fleet_evidence import RECORDING, the_story, verdicts_in

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.generated import writing
from necroscope.fleet.generated.truth import LEAKS, UNIT, ZONES
from necroscope.fleet.generated.writing import GeneratedFleet, write_fleet
from necroscope.fleet.judging import read_and_judge
from necroscope.fleet.lake import Lake
from necroscope.fleet.questions.occurrences import About
from necroscope.fleet.questions.why import why
from necroscope.fleet.span import Span
from necroscope.fleet.sweep import sweep

NOW_NS = 1_800_000_000_000_000_000
DAY_NS = 86_400_000_000_000


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, GeneratedFleet]:
    """A smaller one, so that it is there in a moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "read_story", lambda _: the_story())
        lake = Lake.open(str(tmp_path_factory.mktemp("generated") / "lake"))
        return lake, write_fleet(lake, RECORDING, NOW_NS, count=200, bundles=2)


def test_every_row_says_that_it_is_generated(fleet: tuple[Lake, GeneratedFleet]) -> None:
    lake, written = fleet
    for table in (
        "events",
        "facts",
        "pulses",
        "jobs",
        "incidents",
        "episodes",
        "core_minutes",
        "stack_minutes",
    ):
        rows = lake.dataset(table).to_table(columns=["cluster", "node"])
        assert set(rows["cluster"].to_pylist()) == {"generated"}, table
        assert set(rows["node"].to_pylist()) <= {node.name for node in written.nodes}
    assert all(
        text.startswith("generated: ")
        for text in lake.dataset("events").to_table()["message"].to_pylist()
    )
    assert all("generated" in path for path in lake.list("bundles"))


def test_nothing_is_left_in_the_inbox_and_nothing_was_refused(
    fleet: tuple[Lake, GeneratedFleet],
) -> None:
    assert fleet[0].list("inbox") == []
    assert fleet[0].list("refused") == []


def test_the_lake_holds_the_truth(fleet: tuple[Lake, GeneratedFleet]) -> None:
    lake, written = fleet
    assert lake.dataset("events").count_rows() == written.incidents
    assert set(lake.dataset("events").to_table()["node"].to_pylist()) == {
        node.name for node in written.affected
    }
    assert set(lake.dataset("pulses").to_table()["node"].to_pylist()) == {
        node.name for node in written.nodes
    }
    assert max(lake.dataset("events").to_table()["time"].to_pylist()) < NOW_NS


def test_the_question_finds_the_unit_and_not_the_zone(fleet: tuple[Lake, GeneratedFleet]) -> None:
    questions = LakeQuestions(fleet[0], NOW_NS)
    answer = why(
        questions, About("event", "nic_reset"), Span(NOW_NS - 8 * DAY_NS, NOW_NS)
    ).as_json()
    assert answer["outcome"] == "separated"
    assert answer["leaders"][0]["name"] == f"unit_outcome {UNIT} is {LEAKS}"
    assert ZONES[0] not in answer["summary"]


def test_a_sweep_finds_what_the_nodes_had_found(fleet: tuple[Lake, GeneratedFleet]) -> None:
    lake, written = fleet
    before = verdicts_in(lake)
    swept = sweep(
        lake,
        lambda evidence, now_ns: (read_and_judge(lake, one, now_ns) for one in evidence),
        is_again=True,
        clock_ns=lambda: NOW_NS,
    )
    assert (swept.judged, swept.incidents, written.bundles) == (2, 2, 2)
    assert set(verdicts_in(lake)) == set(before)
    assert len(verdicts_in(lake)) == len(before) + 2


def test_a_bundle_holds_the_recording_under_the_name_of_its_node(
    fleet: tuple[Lake, GeneratedFleet], tmp_path: Path
) -> None:
    from necroscope.fleet.bundle import unpack
    from necroscope.store.query import Store

    path = fleet[0].list("bundles")[0]
    info = Store.open(unpack(fleet[0].read(path), tmp_path / "recording")).info()
    assert info.node == path.rsplit("/", 1)[1].split("--")[0]


def test_jobs_fail_where_the_network_went(fleet: tuple[Lake, GeneratedFleet]) -> None:
    lake, written = fleet
    rows = lake.dataset("jobs").to_table(columns=["node", "outcome"]).to_pylist()
    affected = {node.name for node in written.affected}
    failed: dict[bool, list[bool]] = {True: [], False: []}
    for row in rows:
        failed[row["node"] in affected].append(row["outcome"] == "failure")
    share = {is_affected: sum(each) / len(each) for is_affected, each in failed.items()}
    assert share[True] > 3 * share[False] > 0


def test_a_lake_that_holds_something_is_left_alone(fleet: tuple[Lake, GeneratedFleet]) -> None:
    with pytest.raises(UsageError, match="is not empty"):
        write_fleet(fleet[0], RECORDING, NOW_NS)


def test_verdicts_name_real_evidence(fleet: tuple[Lake, GeneratedFleet]) -> None:
    lake, _ = fleet
    rows = [row for row in lake.dataset("incidents").to_table().to_pylist() if row["bundle"]]
    paths = set(lake.list("bundles"))
    assert rows
    for row in rows:
        assert any(path.endswith(f"/{row['node']}--{row['bundle']}.bundle") for path in paths)
        assert json.loads(row["report"])["id"] == row["id"]
