"""What the doctor says of a machine: what is seen, what is not and why, and what to do next."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.analysis.checkup.conftest import NOW_NS, Node

from necroscope.cli import doctor

REFUSED = "cannot sample all CPUs: perf_event_paranoid is 2 (run as root)"


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    drawn = Node()
    monkeypatch.setattr(doctor, "look", lambda *_: drawn.seen())
    monkeypatch.setattr(doctor, "running_recordings", list)
    monkeypatch.setattr(doctor, "default_directory", lambda: Path("/nowhere/necroscope"))
    monkeypatch.setattr(doctor, "_space", lambda *_: (1 << 40, False))
    return drawn


def test_what_is_missing_is_named_with_its_cause_and_the_exit_code(node: Node) -> None:
    node.add("gaps", time=NOW_NS - 1, end=NOW_NS, table="samples", cause=REFUSED)
    done = CliRunner().invoke(doctor.command, ["--json"])
    found = json.loads(done.stdout)
    assert done.exit_code == 1
    lacking = [one for one in found["abilities"] if not one["is_seen"]]
    assert [(one["what"][:6], one["causes"]) for one in lacking] == [("stacks", [REFUSED])]
    text = CliRunner().invoke(doctor.command, []).stdout
    assert REFUSED in text


def test_a_machine_that_gives_everything_is_reported_how_to_start(node: Node) -> None:
    done = CliRunner().invoke(doctor.command, [])
    assert done.exit_code == 0
    assert " NO " not in done.stdout
    assert "start it: necroscope record" in done.stdout


def test_a_lost_record_of_a_running_source_is_not_a_missing_ability(node: Node) -> None:
    node.add("gaps", time=NOW_NS - 1, end=NOW_NS, table="samples", cause="ring full", lost=3)
    assert CliRunner().invoke(doctor.command, []).exit_code == 0


def test_a_recorder_that_runs_is_asked_instead_of_another_one_started(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "running_recordings", lambda: [Path("/data/rec")])
    assert "necroscope diagnose /data/rec" in CliRunner().invoke(doctor.command, []).stdout
