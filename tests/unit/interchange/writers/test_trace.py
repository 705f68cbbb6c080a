"""The trace for Perfetto and Chrome: who was on each core, who waited, and what happened, in time."""

import io
import json
from typing import Any

import pyarrow as pa

from necroscope.interchange.writers.trace import CORES, EVENTS, write_trace
from necroscope.model.tables import TABLES
from necroscope.segment.arrow import schema_of

MS = 1_000_000


def rows_of(name: str, *rows: dict[str, Any]) -> pa.Table:
    schema = schema_of(TABLES[name])
    return pa.Table.from_pylist(
        [{field.name: each.get(field.name) for field in schema} for each in rows], schema
    )


def written(tables: Any, facts: Any, **given: pa.Table) -> dict[str, Any]:
    out = io.BytesIO()
    others = {name: given.get(name, rows_of(name)) for name in ("cores", "waits", "events")}
    write_trace(tables, facts, out, **others)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def of(trace: dict[str, Any], phase: str, pid: int | None = None) -> list[dict[str, Any]]:
    return [
        each for each in trace["traceEvents"] if each["ph"] == phase and pid in (None, each["pid"])
    ]


def track_names(trace: dict[str, Any]) -> set[str]:
    return {each["args"]["name"] for each in of(trace, "M") if each["name"].endswith("_name")}


def test_samples_of_one_thread_that_follow_each_other_are_one_slice(
    tables: Any, facts: Any
) -> None:
    slices = of(written(tables, facts), "X", CORES)
    core_0 = [(each["name"], each["ts"], each["dur"]) for each in slices if each["tid"] == 0]
    assert core_0 == [
        ("app", 0, 20_000),
        ("nginx", 20_000, 10_000),
        ("app", 50_000, 10_000),
    ]
    assert slices[0]["args"]["mostly in"] == "mem_cgroup_iter"
    assert slices[0]["args"]["samples"] == 2


def test_a_wait_is_once_on_the_track_of_its_thread_with_who_was_in_the_way(
    tables: Any, facts: Any
) -> None:
    base = {"kind": "runnable", "pid": 10, "tid": 11, "comm": "app", "cpu": 1, "by_comm": "hog"}
    start = facts.from_ns
    waits = rows_of(
        "waits",
        {**base, "time": start + 30 * MS, "waited_ns": 20 * MS, "is_open": True},
        {**base, "time": start + 60 * MS, "waited_ns": 50 * MS, "is_open": False},
    )
    (wait,) = of(written(tables, facts, waits=waits), "X", 10)
    assert (wait["ts"], wait["dur"], wait["tid"]) == (10_000, 50_000, 11)
    assert wait["name"] == "waits: runnable"
    assert wait["args"]["by_comm"] == "hog"
    assert "app (10)" in track_names(written(tables, facts, waits=waits))


def test_of_a_wait_only_the_part_in_the_window_is_shown(tables: Any, facts: Any) -> None:
    base = {"kind": "blocked", "pid": 10, "comm": "app", "cpu": 0, "is_open": False}
    waits = rows_of(
        "waits",
        {**base, "tid": 10, "time": facts.from_ns + 5 * MS, "waited_ns": 900 * MS},
        {**base, "tid": 11, "time": facts.to_ns + 50 * MS, "waited_ns": 60 * MS},
        {**base, "tid": 12, "time": facts.to_ns + 80 * MS, "waited_ns": 60 * MS},
    )
    found = of(written(tables, facts, waits=waits), "X", 10)
    assert [(each["tid"], each["ts"], each["dur"]) for each in found] == [
        (10, 0, 5_000),
        (11, 90_000, 10_000),
    ]


def test_cores_are_counters_and_events_are_marks(tables: Any, facts: Any) -> None:
    tick = {"cpu": 1, "elapsed_ns": 100 * MS, "system_ns": 90 * MS, "user_ns": None}
    reset = {"kind": "nic_reset", "message": "eth0: reset", "cpu": 1}
    trace = written(
        tables,
        facts,
        cores=rows_of("cores", {**tick, "time": facts.to_ns}),
        events=rows_of("events", {**reset, "time": facts.from_ns + 40 * MS}),
    )
    (counter,) = of(trace, "C")
    assert counter["name"] == "core 1, percent of time"
    assert (counter["ts"], counter["args"]["system"]) == (0, 90.0)
    assert "user" not in counter["args"]
    (mark,) = of(trace, "i", EVENTS)
    assert (mark["name"], mark["ts"], mark["args"]["message"]) == (
        "nic_reset",
        40_000,
        "eth0: reset",
    )


def test_tracks_have_names_and_what_is_left_out_is_said(tables: Any, facts: Any) -> None:
    trace = written(tables, facts)
    assert {"cores", "core 0", "core 1"} <= track_names(trace)
    assert trace["otherData"]["left out"] == ["2 s of samples: journal torn"]
