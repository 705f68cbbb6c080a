"""`necroscope fleet trial` from the plan to the proof, and to the undo."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.fleet_lakes import CLUSTER, DrawnLake

from necroscope.cli.fleet_trial import command
from necroscope.errors import UsageError
from necroscope.fleet.trial.ledger import read_trial, write_trial

NODES = [f"n{number:02d}" for number in range(40)]


def ran(*words: object) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake of 40 nodes late on day 1, and a directory in which a file stands for the treatment."""
    (tmp_path / "on").mkdir()
    drawn = DrawnLake(tmp_path / "lake")
    for node in NODES:
        drawn.alive(node, range(2))
        drawn.fact(node, "label", "zone", "a")
    drawn.write()
    set_day(monkeypatch, 1.991)
    return tmp_path


def set_day(monkeypatch: pytest.MonkeyPatch, day: float) -> None:
    now_ns = 1_775_001_600 * 10**9 + round(day * 86_400 * 10**9)
    monkeypatch.setattr("time.time_ns", lambda: now_ns)


def planned(place: Path, *more: object) -> Path:
    file = place / "x.trial.json"
    words = ["--event", "nic_reset", "--where", "zone=a", "--seed", 1, "--lake", place / "lake"]
    commands = ["--apply", f"touch {place}/on/{{node}}", "--revert", f"rm -f {place}/on/{{node}}"]
    output = ran("plan", file, *words, *commands, *more)
    assert output.exit_code == 0, output.exception
    return file


def later(place: Path, monkeypatch: pytest.MonkeyPatch, hit: set[str]) -> None:
    """Ten days on, these nodes were hit."""
    drawn = DrawnLake(place / "lake")
    for node in NODES:
        drawn.alive(node, range(2, 12))
    for number, node in enumerate(sorted(hit)):
        drawn.event(node, "nic_reset", 3 + number / 10)
    drawn.write("later")
    set_day(monkeypatch, 12)


def on(place: Path) -> set[str]:
    return {file.name for file in (place / "on").iterdir()}


def test_without_yes_it_says_what_it_would_do_and_does_nothing(place: Path) -> None:
    file = planned(place)
    output = ran("run", file, "--lake", place / "lake").stdout
    treated = [node.node for node in read_trial(file).treated]
    assert len(treated) == 20
    assert all(f"touch {place}/on/{node}" in output for node in treated)
    assert on(place) == set()


def test_a_treatment_that_helps_stays_and_the_proof_is_reported(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = planned(place)
    first = ran("run", file, "--yes", "--for", "0s", "--lake", place / "lake")
    assert first.exit_code == 8
    treated = {node.node for node in read_trial(file).treated}
    assert on(place) == treated
    later(place, monkeypatch, set(NODES) - treated)
    done = ran("run", file, "--yes", "--lake", place / "lake", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["finding"] == "it helps"
    assert on(place) == treated
    assert read_trial(file).finding == "it helps"
    again = ran("run", file, "--yes", "--lake", place / "lake")
    assert isinstance(again.exception, UsageError)


def test_a_treatment_that_does_not_help_is_taken_back(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = planned(place)
    ran("run", file, "--yes", "--for", "0s", "--lake", place / "lake")
    later(place, monkeypatch, {node.node for node in read_trial(file).treated})
    assert ran("status", file, "--lake", place / "lake").exit_code == 1
    done = ran("run", file, "--yes", "--lake", place / "lake")
    assert done.exit_code == 1
    assert "it does not help" in done.stdout
    assert on(place) == set()


def test_a_trial_can_be_taken_back_at_any_time(place: Path) -> None:
    file = planned(place)
    ran("run", file, "--yes", "--for", "0s", "--lake", place / "lake")
    assert len(ran("revert", file).stdout.splitlines()) == 20
    assert len(on(place)) == 20
    assert ran("revert", file, "--yes").exit_code == 0
    assert on(place) == set()


def test_an_undo_that_fails_is_reported_and_the_trial_stays_open(place: Path) -> None:
    file = planned(place)
    ran("run", file, "--yes", "--for", "0s", "--lake", place / "lake")
    trial = read_trial(file)
    trial.revert = "false {node}"
    write_trial(file, trial)
    output = ran("revert", file, "--yes")
    assert output.exit_code == 1
    assert "still on" in output.stdout
    assert read_trial(file).ended_ns is None


def test_a_plan_that_cannot_be_is_refused(place: Path) -> None:
    lake = ["--lake", place / "lake", "--where", "zone=a", "--event", "nic_reset"]
    good = ["--apply", "touch {node}", "--revert", "rm {node}"]
    for words in (
        ["plan", place / "x.json", *lake, *good],
        ["plan", place / "x.trial.json", *lake, "--apply", "touch", "--revert", "rm {node}"],
        ["plan", place / "x.trial.json", *lake, *good, "--nodes", 4],
    ):
        assert isinstance(ran(*words).exception, UsageError)
    file = planned(place)
    assert isinstance(ran("plan", file, *lake, *good).exception, UsageError)
    other = ran("plan", place / "y.trial.json", *lake, *good)
    assert isinstance(other.exception, UsageError)
    assert CLUSTER in str(other.exception)
    assert isinstance(ran("status", file, "--lake", place / "lake").exception, UsageError)
