"""`necroscope notify`: what it asks for, and one look with --once, judged by the real analysis in
its own process.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.drawn_node import at, drawn_node
from tests.growing_recording import GrowingRecording
from tests.kubernetes_api import TOKEN, KubernetesApi
from tests.receiving_server import ReceivingServer, receiving_server

from necroscope.cli.notify import command
from necroscope.errors import RecordingError, UsageError

NODE = f"""
    core 0:  {"." * 60}
    core 1:  {"." * 10}{"x" * 20}{"." * 30}
    x: system  tool[44]  /  main > odd_driver_loop
"""


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def receiver() -> Iterator[ReceivingServer]:
    with receiving_server() as server:
        yield server


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GrowingRecording:
    """Drawn a year ago; for the command it is now."""
    monkeypatch.setattr(time, "time_ns", lambda: at(60))
    monkeypatch.delenv("NODE_NAME", raising=False)
    return (
        GrowingRecording(tmp_path / "recording", drawn_node(NODE), {"zone": "a"})
        .grow(60)
        .pin(-280, 140)
    )


def run(recording: GrowingRecording, *options: str) -> int:
    return (
        CliRunner()
        .invoke(command, [str(recording.directory), "--once", *options], catch_exceptions=False)
        .exit_code
    )


def test_once_tells_what_is_new_and_the_second_time_nothing(
    recording: GrowingRecording, receiver: ReceivingServer
) -> None:
    assert run(recording, "--webhook", receiver.url) == 0
    assert run(recording, "--webhook", receiver.url) == 0
    (request,) = receiver.received
    assert request.content["labels"] == {"zone": "a"}
    assert (recording.directory / ".notify.json").stat().st_mode & 0o077 == 0


def test_what_could_not_be_delivered_is_the_exit_code(
    recording: GrowingRecording, receiver: ReceivingServer, tmp_path: Path
) -> None:
    receiver.replies.append((500, {}, b""))
    state = ("--state", str(tmp_path / "told.json"))
    assert run(recording, "--webhook", receiver.url, *state) == 1
    assert run(recording, "--webhook", receiver.url, *state) == 0
    assert len(receiver.received) == 2
    assert not (recording.directory / ".notify.json").exists()


def test_kubernetes_is_reported_under_the_name_that_it_knows(
    recording: GrowingRecording, receiver: ReceivingServer, tmp_path: Path
) -> None:
    api = KubernetesApi("ip-10-0-0-1.internal")
    receiver.reply = api
    (tmp_path / "token").write_text(TOKEN)
    where = (
        "--kubernetes",
        "--kubernetes-api",
        receiver.url,
        "--kubernetes-credentials",
        str(tmp_path),
    )
    assert run(recording, *where, "--node-name", "ip-10-0-0-1.internal") == 0
    assert api.condition("ip-10-0-0-1.internal")["status"] == "True"
    assert len(api.events) == 1


def test_what_is_missing_is_said_before_anything_is_done(
    recording: GrowingRecording, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no channel to notify"):
        run(recording)
    with pytest.raises(UsageError, match="cannot read the secret"):
        run(
            recording,
            "--webhook",
            "http://127.0.0.1:9/",
            "--webhook-secret-file",
            str(tmp_path / "none"),
        )
    with pytest.raises(UsageError, match="is not a URL"):
        run(recording, "--webhook", "nowhere")
    with pytest.raises(RecordingError, match="is not a recording"):
        CliRunner().invoke(
            command,
            [str(tmp_path), "--once", "--webhook", "http://127.0.0.1:9/"],
            catch_exceptions=False,
        )


def test_the_process_that_waits_for_weeks_is_small() -> None:
    program = (
        "import sys, necroscope.cli.notify; print({'numpy', 'pyarrow', 'fastapi'} &"
        " sys.modules.keys() or 'small')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert ran.stdout == "small\n"


def test_a_place_where_nothing_can_be_written_is_said(
    recording: GrowingRecording, receiver: ReceivingServer, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match="cannot write"):
        run(
            recording,
            "--webhook",
            receiver.url,
            "--state",
            str(tmp_path / "no" / "such" / "place.json"),
        )
    assert receiver.received == []


def test_a_secret_that_everybody_may_read_is_warned_of(
    recording: GrowingRecording, receiver: ReceivingServer, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    words = [
        str(recording.directory),
        "--once",
        "--webhook",
        receiver.url,
        "--webhook-secret-file",
        str(secret),
    ]
    for mode, is_warned in ((0o644, True), (0o600, False)):
        secret.chmod(mode)
        assert (
            "every user of this machine may read" in CliRunner().invoke(command, words).output
        ) == is_warned
