"""The demo's fleet: a recording moved in time is the same recording, and the shipped lake has the
answer that is known.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.fleet_evidence import (
    DEMO_LAKE,
    INCIDENT,
    MINUTE_NS,
    RECORDING,
    analysed_incidents,
)

from necroscope.analysis.engine import diagnose
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.bundle import unpack
from necroscope.fleet.demo_lake import DemoFleet, MovedStore, move_rows, write_demo_lake
from necroscope.fleet.judging import read_and_judge
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.fleet.questions.answer import answer
from necroscope.fleet.questions.occurrences import Subject
from necroscope.fleet.questions.why import why
from necroscope.fleet.sweep import sweep
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.outlets.push.incident_rows import incident_rows
from necroscope.store.query import Store

NOW_NS = 1_800_000_000_000_000_000
DAY_NS = 86_400_000_000_000
BY_NS = 1000 * MINUTE_NS
REAL = Store.open(RECORDING)
MOVED = MovedStore(RECORDING, BY_NS, "gpu-17")


def span() -> tuple[int, int]:
    info = REAL.info()
    assert info.from_ns is not None
    assert info.to_ns is not None
    return info.from_ns, info.to_ns + 1


def test_every_table_is_there_and_later() -> None:
    from_ns, to_ns = span()
    for name, table in TABLES.items():
        here, there = (
            REAL.rows(name, from_ns, to_ns),
            MOVED.rows(name, from_ns + BY_NS, to_ns + BY_NS),
        )
        assert len(here) == len(there), name
        if table.is_timed and len(here):
            assert there["time"][0].as_py() == here["time"][0].as_py() + BY_NS


def test_only_moments_differ() -> None:
    from_ns, to_ns = span()
    here, there = (
        REAL.rows("anchors", from_ns, to_ns),
        MOVED.rows("anchors", from_ns + BY_NS, to_ns + BY_NS),
    )
    differing = {name for name in here.column_names if not here[name].equals(there[name])}
    assert differing == {"time", "realtime_ns"}


def test_samples_gaps_pins_and_identity_are_moved_too() -> None:
    from_ns, to_ns = span()
    here, there = REAL.samples(from_ns, to_ns), MOVED.samples(from_ns + BY_NS, to_ns + BY_NS)
    assert there.stacks.equals(here.stacks)
    assert there.samples["time"][0].as_py() == here.samples["time"][0].as_py() + BY_NS
    assert [pin.from_ns for pin in MOVED.pins()] == [pin.from_ns + BY_NS for pin in REAL.pins()]
    info = MOVED.info()
    assert (info.node, info.from_ns) == ("gpu-17", from_ns + BY_NS)
    assert MOVED.catalog.identity is not None
    assert MOVED.catalog.identity.node == "gpu-17"


def test_events_can_be_added() -> None:
    from_ns, to_ns = span()
    event = {
        "time": from_ns + 5,
        "kind": "nic_reset",
        "severity": 3,
        "by_kernel": True,
        "message": "generated: reset",
    }
    with_it = MovedStore(RECORDING, BY_NS, "gpu-17", [event])
    rows = with_it.rows("events", from_ns + BY_NS, to_ns + BY_NS)
    assert rows["kind"].to_pylist()[0] == "nic_reset"
    assert len(rows) == len(REAL.rows("events", from_ns, to_ns)) + 1
    assert (
        "nic_reset"
        not in with_it.rows("events", from_ns + BY_NS + 6, to_ns + BY_NS)["kind"].to_pylist()
    )
    only = with_it.rows("events", from_ns + BY_NS, to_ns + BY_NS, columns=("kind",))
    assert only.column_names == ["kind"]
    assert isinstance(only, pa.Table)


def test_a_moved_row_is_what_the_analysis_says_of_the_moved_recording() -> None:
    window = INCIDENT.window[0] + BY_NS, INCIDENT.window[1] + BY_NS
    store = INCIDENT.moved_store(BY_NS, "vm")
    found = incident_rows(diagnose(store, span=Span(*window)).wrong, None, window[1])
    rows = pa.Table.from_pylist([row | {"bundle": None} for row in analysed_incidents()])
    assert found == move_rows(rows, BY_NS).to_pylist()


def test_the_verdict_is_real_and_the_reset_is_said_to_be_generated() -> None:
    (incident,) = analysed_incidents()
    assert (incident["time"], incident["end"]) == INCIDENT.held
    assert (incident["cause"], incident["core"]) == ("zombie-memcg-walk", INCIDENT.core)
    assert incident["confidence"] >= 0.8
    (event,) = json.loads(incident["report"])["events"]
    assert event["kind"] == "nic_reset"
    assert event["message"].startswith("generated: ")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, DemoFleet]:
    lake = Lake.open(str(tmp_path_factory.mktemp("generated") / "lake"))
    return lake, write_demo_lake(DEMO_LAKE, RECORDING, lake, NOW_NS)


def test_every_row_says_that_it_is_generated(fleet: tuple[Lake, DemoFleet]) -> None:
    lake, written = fleet
    assert (written.nodes, written.bundles) == (500, 8)
    for table in LAKE_TABLES.keys() - {"gaps", "gauges"}:
        rows = lake.dataset(table).to_table(columns=["cluster", "node"])
        assert set(rows["cluster"].to_pylist()) == {"generated"}, table
        assert all(node.startswith("generated-") for node in rows["node"].unique().to_pylist())
    messages = lake.dataset("events").to_table()["message"].to_pylist()
    assert len(messages) == written.incidents
    assert all(text.startswith("generated: ") for text in messages)
    assert all("generated" in path for path in lake.list("bundles"))


def test_the_week_ends_now(fleet: tuple[Lake, DemoFleet]) -> None:
    for table in ("events", "incidents", "pulses", "jobs"):
        times = lake_times(fleet[0], table)
        assert NOW_NS - 9 * DAY_NS < min(times) < max(times) <= NOW_NS, table
    assert NOW_NS - max(lake_times(fleet[0], "pulses")) <= MINUTE_NS


def lake_times(lake: Lake, table: str) -> list[int]:
    return lake.dataset(table).to_table(columns=["time"])["time"].to_pylist()


def test_the_question_finds_the_unit_and_not_the_zone(fleet: tuple[Lake, DemoFleet]) -> None:
    span = Span(NOW_NS - 8 * DAY_NS, NOW_NS)
    answer = why(LakeQuestions(fleet[0], NOW_NS), Subject("event", "nic_reset"), span).as_json()
    assert answer["outcome"] == "separated"
    assert answer["leaders"][0]["name"] == "unit_outcome metrics-d.service is crash-loop"
    assert "us-east-1a" not in answer["summary"]


def test_a_job_that_died_leads_to_the_unit_that_leaks(fleet: tuple[Lake, DemoFleet]) -> None:
    questions = LakeQuestions(fleet[0], NOW_NS)
    found = answer("jobs", questions, {"since": "-8d"})
    assert (found["blames"]["machine"], found["blames"]["program"]) == (24, 5)
    story = answer("job", questions, {})
    assert (story["blame"], story["cause"], story["core"]) == ("machine", "zombie-memcg-walk", 1)
    assert story["origin"] is not None
    assert story["cost"]["gpu_hours"] > 100
    assert story["cost"]["jobs_this_week"] > 5


def test_a_sweep_finds_what_the_nodes_had_found(fleet: tuple[Lake, DemoFleet]) -> None:
    lake, written = fleet
    before = verdicts_named_in(lake)
    swept = sweep(
        lake,
        lambda evidence, now_ns: (read_and_judge(lake, one, now_ns) for one in evidence),
        is_again=True,
        clock_ns=lambda: NOW_NS,
    )
    assert (swept.judged, swept.incidents) == (written.bundles, written.bundles)
    assert set(verdicts_named_in(lake)) == set(before)
    assert len(verdicts_named_in(lake)) == len(before) + written.bundles


def test_a_bundle_holds_the_recording_under_the_name_of_its_node(
    fleet: tuple[Lake, DemoFleet], tmp_path: Path
) -> None:
    path = fleet[0].list("bundles")[0]
    info = Store.open(unpack(fleet[0].read(path), tmp_path / "recording")).info()
    assert info.node == path.rsplit("/", 1)[1].split("--")[0]


def test_verdicts_name_real_evidence(fleet: tuple[Lake, DemoFleet]) -> None:
    lake, _ = fleet
    rows = [row for row in lake.dataset("incidents").to_table().to_pylist() if row["bundle"]]
    paths = set(lake.list("bundles"))
    assert rows
    for row in rows:
        assert any(path.endswith(f"/{row['node']}--{row['bundle']}.bundle") for path in paths)
        assert json.loads(row["report"])["id"] == row["id"]


def test_jobs_fail_where_the_network_went(fleet: tuple[Lake, DemoFleet]) -> None:
    lake, _ = fleet
    affected = set(lake.dataset("events").to_table()["node"].to_pylist())
    failed: dict[bool, list[bool]] = {True: [], False: []}
    for row in lake.dataset("jobs").to_table(columns=["node", "outcome"]).to_pylist():
        failed[row["node"] in affected].append(row["outcome"] == "failure")
    share = {is_affected: sum(each) / len(each) for is_affected, each in failed.items()}
    assert share[True] > 3 * share[False] > 0


def verdicts_named_in(lake: Lake) -> list[tuple[Any, ...]]:
    """What was named on which node; the words around it may change with each version."""
    columns = ["node", "id", "cause", "culprit_comm", "origin_kind", "origin_name"]
    return [tuple(row.values()) for row in lake.dataset("incidents").to_table(columns).to_pylist()]
