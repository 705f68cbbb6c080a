"""The command: text, JSON, a moment, and what it says to wrong words."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.drawn_recording import draw
from tests.written_recording import WrittenSegment, new_recording

from necroscope.cli.diagnose import command
from necroscope.errors import CorruptData, PermissionMissing, RecordingError, UsageError


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two cores without /proc/stat, one of them in the kernel for 5 s."""
    times = [number / 50 for number in range(250)]
    cells = "  ".join(f"{time + 4:.2f}" for time in times)
    frames = "\n".join(
        "  ".join([name] * len(times)) for name in ("main", "read@kernel", "odd_loop@kernel")
    )
    text = f"time: {cells}\ncpu: {'  '.join(['1'] * len(times))}\n{frames}"
    return draw(tmp_path / "d", text, until=20)


def test_the_incident_is_reported_as_text_and_as_json(recording: Path) -> None:
    page = CliRunner().invoke(command, [str(recording)], catch_exceptions=False)
    assert page.exit_code == 0
    answer = CliRunner().invoke(command, [str(recording), "--json"], catch_exceptions=False)
    assert set(json.loads(answer.stdout)) == {
        "schema",
        "node",
        "from",
        "to",
        "asked",
        "incidents",
        "gaps",
        "notes",
    }


def test_a_moment_outside_of_the_recording_is_an_error_with_its_span(recording: Path) -> None:
    with pytest.raises(UsageError, match="is not in the recording") as error:
        CliRunner().invoke(
            command, [str(recording), "--at", "2020-01-01T00:00:00"], catch_exceptions=False
        )
    assert "it holds 2025-10-09" in error.value.hint


def test_what_is_no_recording_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError):
        CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)


def test_watching_and_asking_exclude_each_other(recording: Path) -> None:
    with pytest.raises(UsageError, match="--watch"):
        CliRunner().invoke(command, [str(recording), "--watch", "--json"], catch_exceptions=False)


def test_watching_what_nobody_records_tells_what_there_is_and_ends(recording: Path) -> None:
    result = CliRunner().invoke(command, [str(recording), "--watch"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "of " in result.stdout.splitlines()[0]
    assert "nothing records here now" in result.stderr


def test_a_core_that_was_not_recorded_is_an_error(recording: Path) -> None:
    with pytest.raises(UsageError, match="no core 77"):
        CliRunner().invoke(command, [str(recording), "--cpu", "77"], catch_exceptions=False)


@pytest.mark.parametrize("damaged", ["manifest.json", "*"])
def test_a_recording_of_which_nothing_can_be_read_is_an_error(
    recording: Path, damaged: str
) -> None:
    for file in recording.glob(f"*Z/{damaged}"):
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CorruptData):
        CliRunner().invoke(command, [str(recording)], catch_exceptions=False)


def test_a_directory_that_may_not_be_read_is_reported_with_the_way_out(
    recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PermissionMissing) as error:
        CliRunner().invoke(command, [str(recording)], catch_exceptions=False)
    assert "root" in error.value.hint


def test_a_recording_without_incidents_names_its_busiest_stretch_and_the_next_command(
    tmp_path: Path,
) -> None:
    recording = new_recording(tmp_path / "quiet")
    WrittenSegment(recording, 0).ticks(0, 30, cpus=2, user=0.8).leave()
    done = CliRunner().invoke(command, [str(recording)], catch_exceptions=False)
    assert done.stdout.startswith("no incident")
    assert "The busiest stretch: core " in done.stdout
    asked = done.stdout.strip().splitlines()[-1].split()[2:]
    assert CliRunner().invoke(command, asked, catch_exceptions=False).exit_code == 0


def test_a_recording_of_idle_cores_says_so(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "idle")
    WrittenSegment(recording, 0).ticks(0, 30, cpus=2, user=0.01).leave()
    done = CliRunner().invoke(command, [str(recording)], catch_exceptions=False)
    assert "Every core was mostly idle." in done.stdout


def test_a_stretch_has_only_what_happened_in_it(recording: Path) -> None:
    def answer(*words: str) -> dict[str, Any]:
        done = CliRunner().invoke(
            command, [str(recording), "--json", *words], catch_exceptions=False
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    held = answer("--from", "-20s", "--to", "-1s")
    assert [one["core"] for one in held["incidents"]] == [1]
    before = answer("--from", "08:53:20", "--to", "08:53:24.1")
    assert (before["from"][11:19], before["to"][11:19]) == ("08:53:20", "08:53:24")
    assert before["incidents"] == []


def test_a_stretch_of_which_nothing_was_recorded_is_an_error_with_the_span(
    recording: Path,
) -> None:
    words = ["--from", "2020-01-01", "--to", "2020-01-02", "--victim", "sh"]
    with pytest.raises(UsageError, match="is not in the recording") as error:
        CliRunner().invoke(command, [str(recording), *words], catch_exceptions=False)
    assert "it holds 2025-10-09" in error.value.hint
