"""Which recording a command is about when it does not say: the recorder that runs, else the usual
place.
"""

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from necroscope.cli import recording_place
from necroscope.errors import UsageError
from necroscope.segment.lock import RecordingLock
from necroscope.segment.recording import Identity, make_recording


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Other recorders of this machine are not this test's."""
    monkeypatch.setattr(recording_place, "SYSTEM_DIRECTORY", tmp_path / "system")
    monkeypatch.setattr(recording_place, "_lock_holders", lambda: [os.getpid()])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    make_recording(tmp_path / "trouble", Identity("node", "boot", "test", {}))
    return tmp_path / "trouble"


def test_the_recorder_that_runs_is_found_by_its_lock(recording: Path) -> None:
    with RecordingLock(recording):
        assert recording_place.running_recordings() == [recording]
        assert recording_place.find_recording() == recording
    assert recording_place.running_recordings() == []


def test_without_a_recorder_the_usual_directory_is_read(recording: Path) -> None:
    recording.parent.joinpath("state").mkdir()
    recording.rename(recording.parent / "state" / "necroscope")
    assert recording_place.find_recording() == recording.parent / "state" / "necroscope"


@pytest.mark.usefixtures("recording")
def test_nothing_to_read_is_an_error_with_the_command_that_starts_a_recorder() -> None:
    with pytest.raises(UsageError, match="no recorder runs here") as error:
        recording_place.find_recording()
    assert "necroscope record" in error.value.hint


def test_of_two_recorders_none_is_guessed(recording: Path) -> None:
    other = recording.parent / "other"
    make_recording(other, Identity("node", "boot", "test", {}))
    with (
        RecordingLock(recording),
        RecordingLock(other),
        pytest.raises(UsageError, match="2 recorders run here") as error,
    ):
        recording_place.find_recording()
    assert str(other) in error.value.facts


@pytest.mark.usefixtures("recording")
def test_a_lock_file_of_another_user_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert recording_place._is_trusted(1)
    assert recording_place._is_trusted(os.getpid()) == (os.getuid() == 0)


def test_a_shell_that_completes_is_offered_recordings_and_told_nothing(recording: Path) -> None:
    @click.command()
    @recording_place.recording_argument("source")
    def command(source: Path | None) -> None:
        click.echo(str(source))

    with RecordingLock(recording):
        given = CliRunner().invoke(command, [])
        context = command.make_context("x", [], resilient_parsing=True)
        offered = command.params[0].shell_complete(context, str(recording.parent))
    assert given.stdout == f"{recording}\n"
    assert context.params == {"source": None}
    assert offered[0].value == str(recording)
