"""`necroscope flame --waits` as text: who waited, behind whom, in milliseconds."""

from pathlib import Path

import pytest
from tests.drawn_node import drawn_node
from tests.drawn_waits import by, wait
from tests.growing_recording import GrowingRecording
from tests.integration.flame_command import FlameCommand


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    node = drawn_node("core 0:  ....................\ncore 1:  ....................")
    wait(node, 5, 0.95, "raylet", 70, **by("spin", 9, policy="fifo", ran_ns=10**9))
    wait(node, 8, 0.05, "etcd", 80)
    return GrowingRecording(tmp_path / "r", node).grow(20).directory


@pytest.fixture
def flame(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> FlameCommand:
    return FlameCommand(monkeypatch, capfdbinary)


def test_waits_for_a_core_have_no_functions_and_still_say_who_was_in_the_way(
    flame: FlameCommand, recording: Path
) -> None:
    lines = flame(recording, "--waits").out.decode().splitlines()
    assert lines[0].endswith("1,000 ms waited")
    assert lines[2:4] == ["  95.0%       950  raylet", "   5.0%        50  etcd"]
    assert lines[5:] == [
        "   self   total ms waited  function",
        "  95.0%   95.0%       950  [behind spin]",
        "   5.0%  100.0%        50  [waits for a core]",
    ]


def test_a_program_that_did_not_wait_is_an_error_whose_hint_is_about_waits(
    flame: FlameCommand, recording: Path
) -> None:
    done = flame(recording, "--waits", "--comm", "sshd")
    assert done.code == 2
    assert "error: no waits from" in done.said
    assert "waits under the setting `waits` (20ms) are not kept" in done.said
    assert "idle" not in done.said
