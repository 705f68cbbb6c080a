"""The disk's thread outlives what goes wrong around it, and what it could not write is a gap."""

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from necroscope.model.units import NS_PER_S
from necroscope.recorder import disk as disk_module
from necroscope.recorder.disk import Disk
from necroscope.recorder.retention import Limits
from necroscope.segment.journal import SegmentHeader
from necroscope.segment.recording import Identity, Pin, make_recording
from necroscope.store.query import Store

START_NS = 1_760_000_000 * NS_PER_S


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    make_recording(tmp_path / "recording", Identity("node-7", "boot", "0"))
    return tmp_path / "recording"


@pytest.fixture
def disk(directory: Path) -> Iterator[Disk]:
    opened = Disk(
        directory,
        lambda name, start_ns: SegmentHeader(name, "node-7", "boot", start_ns, 2),
        Limits(1 << 30, 1 << 60, 0),
        0.0,
        START_NS,
    )
    opened.start_segment(START_NS)
    yield opened
    if opened._thread.is_alive():
        opened.close()


def write(disk: Disk, second: int) -> None:
    row = (START_NS + second * NS_PER_S, 0, NS_PER_S, *(0,) * 9)
    disk.write({"cores": [row]}, 0, START_NS + second * NS_PER_S)


def told(disk: Disk, words: str) -> bool:
    """Whether it says so within a moment."""
    deadline, notices = time.monotonic() + 10, ""
    while words not in notices and time.monotonic() < deadline:
        notices += "\n".join(disk.take_notices())
        time.sleep(0.01)
    return words in notices


def wait_for_row(directory: Path) -> None:
    deadline = time.monotonic() + 10
    while not Store.open(directory).rows("cores", 0, 1 << 62).num_rows and time.monotonic() < deadline:
        time.sleep(0.01)


def refuse(number: int) -> Callable[..., Any]:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return refused


def test_a_node_without_room_for_a_process_keeps_its_journals(
    disk: Disk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_module.subprocess, "Popen", refuse(errno.EAGAIN))
    write(disk, 1)
    disk.start_segment(START_NS + 2 * NS_PER_S)
    assert told(disk, "stays a journal: Resource temporarily unavailable")
    write(disk, 3)
    disk.close()
    assert Store.open(directory).rows("cores", 0, 1 << 62).num_rows == 2


def test_rows_that_met_an_error_of_the_directory_are_a_gap(disk: Disk, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(disk, 1)
    wait_for_row(directory)
    with monkeypatch.context() as patched:
        patched.setattr(disk_module, "_KEEP_HOUSE_S", -1.0)
        patched.setattr(disk_module.os, "statvfs", refuse(errno.EIO))
        write(disk, 2)
        assert told(disk, "recording pauses: recording directory: [Errno 5]")
    write(disk, 3)
    disk.close()
    store = Store.open(directory)
    assert [row["time"] for row in store.rows("cores", 0, 1 << 62).to_pylist()] == [START_NS + NS_PER_S, START_NS + 3 * NS_PER_S]
    (gap,) = store.info().gaps
    assert (gap.table, gap.from_ns, gap.to_ns) == ("*", START_NS + NS_PER_S, START_NS + 2 * NS_PER_S)


def test_closing_ends_though_the_directory_is_gone(disk: Disk, directory: Path) -> None:
    write(disk, 1)
    wait_for_row(directory)
    shutil.rmtree(directory)
    disk.close()


def test_a_pin_that_cannot_be_written_is_told(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_module, "write_pins", refuse(errno.EROFS))
    disk.pin(Pin(START_NS, START_NS + NS_PER_S, "core_held: core 1"))
    assert told(disk, "Read-only file system")
