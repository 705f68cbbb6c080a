"""Two recordings compared without a collector, and differences as a gate."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.fleet_lakes import draw_story
from tests.written_recording import WrittenSegment, new_recording, row

from necroscope.cli import diff, fleet_diff
from necroscope.errors import RecordingError, UsageError

SPAN = ["--since", "2026-04-01", "--until", "2026-04-11"]


def recorded(path: Path, *facts: tuple[str, str, str | None]) -> Path:
    path.mkdir()
    recording = new_recording(path)
    rows = [
        row("facts", second, kind=kind, name=name, value=value)
        for second, (kind, name, value) in enumerate(facts)
    ]
    WrittenSegment(recording, 0).ticks(0, 60).add("facts", *rows).seal()
    return recording


def ran(*words: object) -> Result:
    return CliRunner().invoke(diff.command, [str(word) for word in words])


@pytest.fixture
def zones(tmp_path: Path) -> tuple[Path, Path]:
    a = recorded(
        tmp_path / "a",
        ("kernel", "release", "6.8"),
        ("unit_outcome", "ecs.service", "never-started"),
        ("unit_outcome", "ecs.service", "crash-loop"),
        ("package", "old", "1"),
        ("package", "old", None),
        ("cloud", "instance_id", "i-1"),
    )
    b = recorded(
        tmp_path / "b",
        ("kernel", "release", "6.8"),
        ("unit_outcome", "ecs.service", "never-started"),
        ("cloud", "instance_id", "i-2"),
        ("label", "\x1b[2Jevil", "1"),
    )
    return a, b


def test_facts_differ_as_they_stood_at_the_end_of_each_recording(zones: tuple[Path, Path]) -> None:
    answer = json.loads(ran(*zones, "--json").stdout)
    found = {each["name"]: (each["a"], each["b"]) for each in answer["differences"]}
    assert found["ecs.service"] == (
        [{"value": "crash-loop", "share": 1.0}],
        [{"value": "never-started", "share": 1.0}],
    )
    assert "old" not in found
    assert "instance_id" not in found
    assert answer["same"] == 1
    text = ran(*zones).stdout
    assert "unit_outcome ecs.service" in text
    assert "\x1b" not in text


def test_the_gate_is_closed_until_every_difference_is_allowed(
    zones: tuple[Path, Path], tmp_path: Path
) -> None:
    assert ran(*zones).exit_code == 0
    closed = ran(*zones, "--gate")
    assert closed.exit_code == 1
    assert "closed by 2 differences" in closed.stderr
    allow = tmp_path / "allow.txt"
    allow.write_text("# zones\nlabel:*\nunit_outcome:ecs.service=crash*\n")
    assert ran(*zones, "--gate", "--allow", allow).exit_code == 1
    allow.write_text("label:*  # any\nunit_outcome:ecs.*\n")
    opened = ran(*zones, "--gate", "--allow", allow, "--json")
    assert opened.exit_code == 0
    assert json.loads(opened.stdout)["gate"]["allowed"] == 2


def test_equal_recordings_pass_the_gate(tmp_path: Path) -> None:
    facts = ("kernel", "release", "6.8")
    assert (
        ran(recorded(tmp_path / "a", facts), recorded(tmp_path / "b", facts), "--gate").exit_code
        == 0
    )


@pytest.mark.parametrize("line", ["label", "label:", ":zone", "label:zone=", "=x"])
def test_an_allow_list_that_says_nothing_opens_no_gate(
    zones: tuple[Path, Path], tmp_path: Path, line: str
) -> None:
    allow = tmp_path / "allow.txt"
    allow.write_text(f"label:zone\n{line}\n")
    output = ran(*zones, "--gate", "--allow", allow)
    assert isinstance(output.exception, UsageError)
    assert "line 2" in output.exception.facts


def test_an_allow_list_that_cannot_be_read_is_an_error(
    zones: tuple[Path, Path], tmp_path: Path
) -> None:
    output = ran(*zones, "--allow", tmp_path / "none")
    assert isinstance(output.exception, UsageError)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert isinstance(ran(*zones, "--allow", tmp_path / "binary").exception, UsageError)


def test_a_recording_without_facts_is_not_equal_to_anything(
    zones: tuple[Path, Path], tmp_path: Path
) -> None:
    empty = recorded(tmp_path / "empty")
    output = ran(zones[0], empty, "--gate")
    assert isinstance(output.exception, RecordingError)
    assert "holds no facts" in output.exception.facts


def test_groups_of_a_fleet_pass_the_gate_unless_chance_would_hardly_make_it(tmp_path: Path) -> None:
    draw_story(tmp_path / "lake", disagree=0).write()
    asked = [*SPAN, "--lake", str(tmp_path / "lake"), "--gate"]
    same = CliRunner().invoke(fleet_diff.command, ["zone=b", "zone=c", *asked, "--json"])
    refused = json.loads(same.stdout)["gate"]["refused"]
    assert set(refused) <= {"label:zone", *(f"sysctl:noise{number}" for number in range(20))}
    other = CliRunner().invoke(fleet_diff.command, ["zone=a", "zone=b", *asked, "--json"])
    assert other.exit_code == 1
    assert "unit_outcome:ecs-agent.service" in json.loads(other.stdout)["gate"]["refused"]
