"""A real recorder pushes to a real collector over TLS; its push process is killed, and so is the
recorder.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.collector_process import TOKEN, CollectorProcess, collector
from tests.fleet_batches import rows_in
from tests.integration.conftest import COMMAND, RunningRecorder
from tests.receiving_server import make_certificate

from necroscope.fleet.lake import Lake

pytestmark = [pytest.mark.root, pytest.mark.kernel]


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    make_certificate(tmp_path)
    (tmp_path / "token").touch(mode=0o600)
    (tmp_path / "token").write_text(TOKEN)
    return [
        "--push-token-file",
        str(tmp_path / "token"),
        "--push-ca-file",
        str(tmp_path / "ca.crt"),
        "--label",
        "zone=a",
    ]


@pytest.fixture
def served(tmp_path: Path, options: list[str]) -> Iterator[CollectorProcess]:
    assert options
    tls = ("--tls-cert", str(tmp_path / "ca.crt"), "--tls-key", str(tmp_path / "key.pem"))
    with collector(
        str(tmp_path / "lake"), tmp_path / "tokens.toml", "--compact-every", "200ms", *tls
    ) as process:
        yield process


def pushing(recorder: RunningRecorder) -> int | None:
    """The pid of its push process."""
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int(
                (directory / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
            )
            if parent == recorder.process.pid and b"push" in (
                directory / "cmdline"
            ).read_bytes().split(b"\0"):
                return int(directory.name)
    return None


def is_gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.1)
    return False


def push_rest(recording: Path, url: str, tmp_path: Path, *options: str) -> None:
    """What a push under way could not send in the time it was given; nothing, on a machine that has
    time.
    """
    command = [
        *COMMAND,
        "fleet",
        "push",
        str(recording),
        "--to",
        url,
        "--token-file",
        str(tmp_path / "token"),
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


def test_everything_is_in_the_lake_once_though_the_push_process_was_killed(
    record: Callable[..., RunningRecorder],
    served: CollectorProcess,
    options: list[str],
    tmp_path: Path,
) -> None:
    url = f"https://127.0.0.1:{served.port}"
    recorder = record("--push", url, *options)
    pid = recorder.wait_until(lambda: pushing(recorder))
    recorder.wait_until(lambda: os.getpriority(os.PRIO_PROCESS, pid) == 10)
    os.kill(pid, signal.SIGKILL)
    again = recorder.wait_until(
        lambda: (found := pushing(recorder)) and found != pid and found, seconds=60
    )
    code, _, said = recorder.stop()
    assert code == 0
    assert said.count("push ended with -9; recording goes on") == 1
    assert is_gone(again)
    push_rest(recorder.directory, url, tmp_path, "--ca-file", str(tmp_path / "ca.crt"))
    served.terminate()
    lake = Lake.open(str(tmp_path / "lake"))
    assert {row["value"] for row in rows_in(lake, "facts") if row["kind"] == "label"} >= {"a"}
    assert sum(row["ticks"] for row in rows_in(lake, "core_minutes")) == len(recorder.rows("cores"))
    assert len(rows_in(lake)) == len(recorder.rows("events"))
    assert rows_in(lake, "pulses")


def test_a_recorder_that_is_killed_takes_its_push_process_with_it(
    record: Callable[..., RunningRecorder],
    served: CollectorProcess,
    options: list[str],
    tmp_path: Path,
) -> None:
    recorder = record("--push", f"https://127.0.0.1:{served.port}", *options)
    recorder.wait_for_rows("cores", 4)
    pid = recorder.wait_until(lambda: pushing(recorder))
    # By then it has begun its work, and knows how it will hear of our end.
    recorder.wait_until((tmp_path / "recording" / ".push" / "cursor.json").exists)
    recorder.kill()
    assert is_gone(pid)


def test_a_collector_that_is_away_is_reported_once_and_what_waits_is_pushed_later(
    record: Callable[..., RunningRecorder], options: list[str], tmp_path: Path
) -> None:
    with collector(str(tmp_path / "lake"), tmp_path / "tokens.toml") as process:
        port = process.port
    url = f"http://127.0.0.1:{port}"
    recorder = record("--push", url, *options)
    recorder.wait_for_rows("cores", 4)
    recorder.wait_until((tmp_path / "recording" / ".push" / "cursor.json").exists)
    code, _, said = recorder.stop()
    assert code == 0
    assert said.count("cannot push: 127.0.0.1: [Errno 111] Connection refused") <= 1, (
        "it may not have come so far"
    )
    with collector(str(tmp_path / "lake"), tmp_path / "tokens.toml", "--port", str(port)):
        push_rest(recorder.directory, url, tmp_path)
    ticks = sum(row["ticks"] for row in rows_in(Lake.open(str(tmp_path / "lake")), "core_minutes"))
    assert ticks == len(recorder.rows("cores"))
