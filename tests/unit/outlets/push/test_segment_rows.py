"""Rows of a segment that were not pushed yet: each once, whenever it comes, however often the
segment is read.
"""

import json
from pathlib import Path

from tests.written_recording import WrittenSegment, at, new_recording, row

from necroscope.outlets.push.cursor import Cursor, SegmentProgress
from necroscope.outlets.push.segment_rows import boot_id_of, new_rows
from necroscope.segment.reader import SegmentReader


def event(seconds: float, kind: str = "nic_reset", **values: object) -> tuple[object, ...]:
    return row("events", seconds, kind=kind, severity=3, message=kind, **values)


def test_events_are_numbered_by_the_log_and_else_by_their_time(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0)
    segment.add("events", event(1, sequence=41), event(2), event(2, "oom_kill"))
    found = new_rows(SegmentReader(segment.path), "boot-1", Cursor("", 0))
    numbers = [event["source_sequence"] for event in found.rows["events"]]
    assert [numbers[0] >> 12, *numbers[1:]] == [41, -at(2), -at(2) - 1]
    assert {event["boot_id"] for event in found.rows["events"]} == {"boot-1"}
    assert found.sequences == numbers[:1]


def test_two_events_of_one_log_record_are_two(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0)
    ours, users = (event(1, sequence=41, pattern=name) for name in ("ena.reset_start", "acme"))
    same_stamp = row("events", 1, kind="nic_reset", message="another", sequence=41)
    segment.add("events", ours, users, same_stamp, ours)
    found = new_rows(SegmentReader(segment.path), "boot-1", Cursor("", 0))
    assert len({event["source_sequence"] for event in found.rows["events"]}) == 3
    assert len(found.rows["events"]) == 3


def test_what_was_pushed_is_not_new_and_what_comes_late_is(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0).add("events", event(10), event(11))
    reader, cursor = SegmentReader(segment.path), Cursor("", 0)
    first = new_rows(reader, "boot-1", cursor)
    cursor.open[segment.path.name.removesuffix(".live")] = SegmentProgress(pushed=first.keys)
    segment.add("events", event(5, "oom_kill"))
    reader.refresh()
    second = new_rows(reader, "boot-1", cursor)
    assert [event["kind"] for event in second.rows["events"]] == ["oom_kill"]


def test_sealing_changes_nothing(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0)
    segment.add("events", event(10), event(10, "oom_kill")).add("events", event(5))
    cursor = Cursor("", 0)
    cursor.open[segment.path.name.removesuffix(".live")] = SegmentProgress(
        pushed=new_rows(SegmentReader(segment.path), "boot-1", cursor).keys
    )
    segment.seal()
    sealed = segment.path.with_suffix("")
    assert new_rows(SegmentReader(sealed), "boot-1", cursor).rows == {}


def test_a_log_that_is_read_again_by_a_new_recorder_gives_no_event_twice(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    first = WrittenSegment(recording, 0).add("events", event(1, sequence=41))
    again = WrittenSegment(recording, 60).add(
        "events", event(1.0000001, sequence=41), event(70, sequence=42)
    )
    cursor = Cursor("", 0)
    pushed = new_rows(SegmentReader(first.path), "boot-1", cursor).sequences
    cursor.note_sequences("boot-1", pushed)
    found = new_rows(SegmentReader(again.path), "boot-1", cursor)
    assert [event["source_sequence"] >> 12 for event in found.rows["events"]] == [42]
    assert len(new_rows(SegmentReader(again.path), "boot-2", cursor).rows["events"]) == 2


def test_gaps_are_rows_too(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0)
    segment.add("gaps", row("gaps", 3, end=at(4), table="samples", cause="lost", cpu=1))
    found = new_rows(SegmentReader(segment.path), "boot-1", Cursor("", 0))
    assert found.rows["gaps"] == [
        {"time": at(3), "end": at(4), "table": "samples", "cause": "lost"}
    ]


def test_a_frame_that_is_being_written_is_no_gap(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0).add("events", event(1))
    with (segment.path / "journal").open("ab") as journal:
        journal.write(b"\xffNCJ half a frame")
    reader = SegmentReader(segment.path)
    assert reader.gaps()
    assert "gaps" not in new_rows(reader, "boot-1", Cursor("", 0)).rows


def test_restarts_after_a_failure_and_ray_jobs_that_are_over_are_ends_of_jobs(
    tmp_path: Path,
) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0)
    failed = json.dumps({"unit": "agent.service", "result": "exit-code"})
    wanted = json.dumps({"unit": "agent.service", "result": "success"})
    job = json.dumps({"submission": "raysubmit_1"})
    segment.add(
        "events", event(1, "unit_restart", fields=failed), event(2, "unit_restart", fields=wanted)
    )
    segment.add(
        "events",
        event(3, "ray_job_failed", fields=job),
        event(4, "ray_job_failed", fields="no JSON"),
    )
    segment.add(
        "events", event(5, "ray_job_succeeded", fields=json.dumps({"submission": "raysubmit_2"}))
    )
    jobs = new_rows(SegmentReader(segment.path), "boot-1", Cursor("", 0)).rows["jobs"]
    assert [(job["kind"], job["name"], job["outcome"]) for job in jobs] == [
        ("unit", "agent.service", "failure"),
        ("ray_job", "raysubmit_1", "failure"),
        ("ray_job", "raysubmit_2", "success"),
    ]


def test_a_time_before_the_clock_was_set_is_left_out(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0).add(
        "events", row("events", 0, time=5, kind="oom_kill")
    )
    assert new_rows(SegmentReader(segment.path), "boot-1", Cursor("", 0)).rows == {}


def test_a_batch_takes_no_more_than_its_share(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0)
    segment.add("events", *(event(1 + number / 1000) for number in range(2500)))
    found = new_rows(SegmentReader(segment.path), "boot-1", Cursor("", 0))
    assert (len(found.rows["events"]), found.is_cut) == (2000, True)


def test_a_segment_tells_its_boot_live_and_sealed(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0, boot_id="boot-7").add(
        "events", event(1)
    )
    assert boot_id_of(segment.path) == "boot-7"
    segment.seal()
    assert boot_id_of(segment.path.with_suffix("")) == "boot-7"
    assert boot_id_of(tmp_path / "2026-11-15T22-03-13.123Z") == "unknown"
