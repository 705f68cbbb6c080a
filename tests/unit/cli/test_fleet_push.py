"""`necroscope fleet push` as a command: its summary, its errors, its exit codes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.receiving_server import receiving_server
from tests.written_recording import WrittenSegment, new_recording

from necroscope.cli import fleet_push
from necroscope.errors import NecroscopeError, RecordingError, UsageError


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # The memory pool is the whole process's, and this one is not ours.
    monkeypatch.setattr(fleet_push, "_stay_small", lambda: None)
    recording = new_recording(tmp_path / "r", labels={"pool": "gpu"})
    WrittenSegment(recording, 0).ticks(0, 100).seal()
    return recording


def run(*arguments: str) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(fleet_push.command, list(arguments))
    return result.exit_code, result.output, result.exception


def test_a_finished_recording_is_pushed_with_a_summary(recording: Path) -> None:
    with receiving_server() as server:
        code, output, _ = run(
            str(recording), "--to", server.url, "--label", "zone=a", "--node", "n-1", "--json"
        )
        again = run(str(recording), "--to", server.url)
    assert code == 0
    summary = json.loads(output)
    assert (summary["node"], summary["batches"], summary["waiting"], summary["refused"]) == (
        "n-1",
        1,
        0,
        0,
    )
    assert summary["rows"] == {"core_minutes": 4, "gauges": 1, "pulses": 1}
    assert again[:2] == (0, "node-a: 0 rows, 0 batches and 0 bundles of evidence in 0 B\n")
    assert len(server.received) == 1


def test_a_collector_that_denies_is_an_error_that_says_what_waits(recording: Path) -> None:
    with receiving_server() as server:
        server.reply = lambda _: (401, {}, b'{"error": "no token", "hint": "give one"}')
        code, _, error = run(str(recording), "--to", server.url)
    assert code == 1
    assert isinstance(error, NecroscopeError)
    assert error.facts == "not all was pushed: the collector answered 401: no token (give one)"
    assert error.hint.startswith("1 batches wait in")


@pytest.mark.parametrize(
    ("arguments", "kind", "facts"),
    [
        (["--to", "nonsense"], UsageError, "not a URL"),
        (["--to", "http://127.0.0.1:1", "--label", "x"], UsageError, "not key=value"),
        (
            ["--to", "http://127.0.0.1:1", "--labels-file", "/absent"],
            UsageError,
            "cannot read labels",
        ),
        (["--to", "http://127.0.0.1:1", "--spool-bytes", "many"], UsageError, "not a valid size"),
        (["--to", "http://127.0.0.1:1", "--spool-bytes", "1"], UsageError, "is too small"),
        (
            ["--to", "https://127.0.0.1:1", "--ca-file", "/absent"],
            UsageError,
            "cannot use the certificates",
        ),
        (
            ["--to", "http://127.0.0.1:1", "--spool", "/proc/spool"],
            RecordingError,
            "cannot make a spool",
        ),
    ],
)
def test_bad_words_are_reported(
    recording: Path, arguments: list[str], kind: type[NecroscopeError], facts: str
) -> None:
    _, _, error = run(str(recording), *arguments)
    assert isinstance(error, kind)
    assert facts in error.facts


def test_what_is_no_recording_is_reported_and_left_alone(tmp_path: Path, recording: Path) -> None:
    (tmp_path / "other").mkdir()
    assert recording.is_dir()
    for directory in (tmp_path / "absent", tmp_path / "other"):
        _, _, error = run(str(directory), "--to", "http://127.0.0.1:1")
        assert isinstance(error, RecordingError)
    assert list((tmp_path / "other").iterdir()) == []


def test_who_follows_waits_for_a_recording(tmp_path: Path, recording: Path) -> None:
    absent, looks = tmp_path / "absent", []

    def is_over(seconds: float) -> bool:
        looks.append(seconds)
        if len(looks) == 3:
            recording.rename(absent)
        return len(looks) > 5

    assert fleet_push._comes(absent, is_over)
    assert len(looks) == 3
    assert not fleet_push._comes(tmp_path / "never", is_over)


def test_a_recording_whose_identity_is_damaged_has_the_name_in_its_segments(
    recording: Path,
) -> None:
    file = recording / "recording.json"
    file.write_bytes(file.read_bytes().replace(b"node-a", b"node-b"))
    assert fleet_push._name_node(recording, None, follow=False) == ("node-a", {})


def test_the_node_is_named_by_the_flag_the_pod_or_the_recording(
    recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_NAME", "gpu-17")
    assert fleet_push._name_node(recording, None, follow=True) == ("gpu-17", {"pool": "gpu"})
    assert fleet_push._name_node(recording, None, follow=False)[0] == "node-a"
    assert fleet_push._name_node(recording, "flag", follow=True)[0] == "flag"


def test_a_token_that_everybody_may_read_is_warned_of(recording: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("necro_x")
    with receiving_server() as server:
        for mode, is_warned in ((0o644, True), (0o600, False)):
            token.chmod(mode)
            _, output, _ = run(str(recording), "--to", server.url, "--token-file", str(token))
            assert ("every user of this machine may read" in output) == is_warned
