"""Members of jobs on their way to the lake: once per hour, once at their end, with how they stood."""

from pathlib import Path
from typing import Any

from tests.written_recording import NS, START_NS, WrittenSegment, at, new_recording, row

from necroscope.fleet.lake_tables import LAKE_TABLES, RECEIPT_COLUMNS
from necroscope.outlets.push.job_members import HOUR_NS, member_rows
from necroscope.segment.reader import SegmentReader
from necroscope.store.query import Store

JOB = "torch/10.0.0.1:29500"
DIED = {"ended_ns": at(60), "status": 256, "words": "RuntimeError: Connection closed by peer"}


def member(seconds: float, **values: Any) -> tuple[object, ...]:
    given = {
        "job": JOB, "kind": "torch", "role": "rank", "rank": 1, "world_size": 2, "pid": 101,
        "comm": "python", "started_ns": at(1),
    }  # fmt: skip
    return row("job_members", seconds, **(given | values))


def starved(from_s: int, to_s: int, pid: int = 101) -> list[tuple[object, ...]]:
    return [
        row("job_progress", second, job=JOB, pid=pid, cpu=1, elapsed_ns=NS, state="R",
            **({"cpu_ns": NS, "delay_ns": 0} if second < from_s else {"delay_ns": NS * 9 // 10}))
        for second in range(2, to_s)
    ]  # fmt: skip


def rows_of(
    recording: Path, segment: WrittenSegment, deaths: dict[str, int] | None = None
) -> list[dict[str, Any]]:
    return list(member_rows(Store.open(recording), SegmentReader(segment.path), deaths or {}, 7))


def test_a_member_that_died_brings_how_it_stood(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    segment = WrittenSegment(recording, 0).ticks(0, 70)
    segment.add("job_members", member(2), member(61, **DIED))
    segment.add("job_progress", *starved(40, 60))
    [found] = rows_of(recording, segment)
    given = {"cluster", "node", *RECEIPT_COLUMNS["job_members"]}
    assert set(found) == set(LAKE_TABLES["job_members"].names) - given
    assert (found["time"], found["status"], found["stop_how"]) == (at(60), 256, "starved")
    assert (found["stop_from"], found["stop_core"]) == (at(39), 1)


def test_a_member_that_lives_is_one_row_per_hour(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    first = WrittenSegment(recording, 0).ticks(0, 10).add("job_members", member(2))
    second = WrittenSegment(recording, 300).ticks(300, 310).add("job_members", member(301))
    later = WrittenSegment(recording, 7200).ticks(7200, 7210).add("job_members", member(7201))
    [one], [two], [three] = (rows_of(recording, each) for each in (first, second, later))
    assert one == two
    assert one["time"] == max(at(1), START_NS // HOUR_NS * HOUR_NS)
    assert three["time"] > one["time"]
    assert one["stop_how"] is None


def test_a_job_that_stands_still_or_died_elsewhere_asks_how_its_living_stand(
    tmp_path: Path,
) -> None:
    recording = new_recording(tmp_path / "r")
    segment = WrittenSegment(recording, 0).ticks(0, 70)
    segment.add("job_members", member(2), member(2, job="slurm/7", pid=102))
    segment.add("job_progress", *starved(40, 60))
    [found, other] = rows_of(recording, segment, {JOB: at(58)})
    assert (found["time"], found["stop_how"], found["ended_ns"]) == (at(58), "starved", None)
    assert other["stop_how"] is None
    stall = {"kind": "job_stalled", "message": "m", "fields": f'{{"job": "{JOB}"}}'}
    segment.add("events", row("events", 57, **stall), row("events", 57, **stall | {"fields": "[]"}))
    assert rows_of(recording, segment)[0]["time"] == at(57)


def test_a_node_without_jobs_sends_nothing(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    assert not rows_of(recording, WrittenSegment(recording, 0).ticks(0, 10), {JOB: at(5)})
