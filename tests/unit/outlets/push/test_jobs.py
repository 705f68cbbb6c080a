"""Ends of runs: a service's by its state, a stakeout's by its summary."""

import json
from pathlib import Path

from tests.written_recording import WrittenSegment, at, new_recording, row

from necroscope.outlets.push.jobs import stakeout_ends, unit_ends
from necroscope.segment.reader import SegmentReader


def unit(
    seconds: float, name: str, state: str, ended_s: float | None, **values: object
) -> tuple[object, ...]:
    ended = {"changed_ns": at(ended_s)} if ended_s is not None else {}
    return row(
        "units", seconds, unit=name, active_state=state, started_ns=at(-100), **ended, **values
    )


def ends(tmp_path: Path, *rows: tuple[object, ...]) -> list[tuple[int, str, str, str | None]]:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0).add("units", *rows)
    found = unit_ends(SegmentReader(segment.path))
    return [(end["time"], end["name"], end["outcome"], end["detail"]) for end in found]


def test_a_service_that_ended_succeeded_or_failed(tmp_path: Path) -> None:
    assert ends(
        tmp_path,
        unit(10, "backup.service", "inactive", 5, result="success"),
        unit(20, "backup.service", "failed", 15, result="exit-code", main_code=1, main_status=3),
        unit(30, "other.service", "failed", 25, result="signal", main_code=2, main_status=9),
    ) == [
        (at(5), "backup.service", "success", None),
        (at(15), "backup.service", "failure", "exit-code, status 3"),
        (at(25), "other.service", "failure", "signal, signal 9"),
    ]


def test_a_state_that_is_reported_again_is_no_new_end(tmp_path: Path) -> None:
    again = [unit(second, "backup.service", "inactive", 5, result="success") for second in (10, 20)]
    assert len(ends(tmp_path, *again)) == 1


def test_what_runs_never_ran_or_ended_long_ago_is_no_end(tmp_path: Path) -> None:
    assert not ends(
        tmp_path,
        unit(10, "a.service", "active", 5),
        unit(10, "b.service", "inactive", None),
        unit(10, "c.service", "inactive", -3600),
        unit(10, "d.timer", "inactive", 5),
        row("units", 10, unit="e.service", active_state="inactive", changed_ns=at(5)),
    )


def test_runs_of_a_stakeout_are_reported_once(tmp_path: Path) -> None:
    runs = [
        {"run": 1, "outcome": "succeeded", "to": "2026-04-15T10:30:00.000Z", "exit_code": 0},
        {"run": 2, "outcome": "stopped", "to": "2026-04-15T10:31:00.000Z", "exit_code": -15},
        {"run": 3, "outcome": "failed", "to": "2026-04-15T10:32:00.000Z", "exit_code": 1},
    ]
    (tmp_path / "stakeout.json").write_text(
        json.dumps({"command": ["train.py", "--secret"], "runs": runs})
    )
    found = stakeout_ends(tmp_path / "recording", 0)
    assert [(number, row["name"], row["outcome"], row["detail"]) for number, row in found] == [
        (1, "train.py", "success", "run 1, exit code 0"),
        (3, "train.py", "failure", "run 3, exit code 1"),
    ]
    assert [number for number, _ in stakeout_ends(tmp_path / "recording", 1)] == [3]


def test_a_damaged_summary_is_none(tmp_path: Path) -> None:
    (tmp_path / "stakeout.json").write_text('{"command": [], "runs": [')
    assert stakeout_ends(tmp_path / "recording", 0) == []
    assert stakeout_ends(tmp_path / "elsewhere" / "recording", 0) == []
