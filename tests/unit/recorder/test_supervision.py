"""systemd and a probe hear from the loop that it goes round."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from necroscope.recorder.supervision import Supervision


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.setblocking(False)
        yield receiver


def heard(manager: socket.socket) -> list[bytes]:
    said = []
    while True:
        try:
            said.append(manager.recv(1024))
        except BlockingIOError:
            return said


def test_systemd_hears_that_recording_began_and_then_that_the_loop_goes_round(
    manager: socket.socket,
) -> None:
    clock = Clock()
    environment = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "6000000"}
    supervision = Supervision(environment, clock)
    for _ in range(5):
        supervision.tell()
        clock.now_s += 1
    assert heard(manager) == [b"READY=1\nWATCHDOG=1", b"WATCHDOG=1", b"WATCHDOG=1"]


def test_a_manager_that_is_gone_does_no_harm(tmp_path: Path) -> None:
    Supervision({"NOTIFY_SOCKET": str(tmp_path / "gone")}).tell()
    Supervision({"NOTIFY_SOCKET": "@necroscope-gone"}).tell()
    Supervision({}).tell()


def test_a_probe_sees_when_the_loop_last_went_round(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "alive"
    supervision = Supervision({"NECROSCOPE_ALIVE_FILE": str(file)}, clock)
    supervision.tell()
    os.utime(file, (0, 0))
    supervision.tell()
    assert file.stat().st_mtime == 0
    clock.now_s += 11
    supervision.tell()
    assert file.stat().st_mtime > 0
