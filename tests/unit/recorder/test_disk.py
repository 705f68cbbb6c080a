"""The disk's thread outlives what goes wrong around it, and what it could not write is a gap."""

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from necroscope.model.units import NS_PER_S
from necroscope.recorder import disk as disk_module
from necroscope.recorder import seal_queue
from necroscope.recorder.disk import Disk
from necroscope.recorder.retention import Limits
from necroscope.recorder.sink import Batch
from necroscope.segment.journal import SegmentHeader
from necroscope.segment.lock import lock_directory
from necroscope.segment.recording import (
    PINS_FILE,
    Identity,
    Pin,
    make_recording,
    segment_name,
    segment_paths,
    segment_start_ns,
)
from necroscope.store.query import Store

START_NS = 1_760_000_000 * NS_PER_S


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    make_recording(tmp_path / "recording", Identity("node-7", "boot", "0"))
    return tmp_path / "recording"


@pytest.fixture
def disk(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    monkeypatch.setattr(disk_module.os, "statvfs", space(0.5))
    opened = open_disk(directory)
    opened.start_segment(START_NS)
    yield opened
    if opened._thread.is_alive():
        opened.close()


def open_disk(directory: Path, max_bytes: int = 1 << 30) -> Disk:
    def header(segment: str, start_ns: int) -> SegmentHeader:
        return SegmentHeader(segment, "node-7", "boot", start_ns, 2)

    return Disk(directory, header, Limits(max_bytes, 1 << 60, 1 << 30), 0.01, START_NS)


def write(disk: Disk, second: int) -> None:
    row = (START_NS + second * NS_PER_S, 0, NS_PER_S, *(0,) * 9)
    disk.write(Batch({"cores": [row]}), 0, START_NS + second * NS_PER_S)


def told(disk: Disk, words: str) -> bool:
    """Whether it says so within a moment."""
    deadline, notices = time.monotonic() + 10, ""
    while words not in notices and time.monotonic() < deadline:
        notices += "\n".join(disk.take_notices())
        time.sleep(0.01)
    return words in notices


def wait_for_row(directory: Path) -> None:
    deadline = time.monotonic() + 10
    while (
        not Store.open(directory).rows("cores", 0, 1 << 62).num_rows and time.monotonic() < deadline
    ):
        time.sleep(0.01)


def wait_for_all_before_a_pin(disk: Disk, directory: Path) -> None:
    """Until what was handed over is done: a pin is handed over after it, and its file shows."""
    disk.pin(Pin(START_NS, START_NS + NS_PER_S, "a test's"))
    deadline = time.monotonic() + 10
    while not (directory / PINS_FILE).exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def space(free_ratio: float) -> Callable[..., SimpleNamespace]:
    """A file system's numbers, this much of it free."""
    return lambda _: SimpleNamespace(
        f_blocks=1000, f_bavail=round(1000 * free_ratio), f_frsize=4096
    )


def refuse(number: int) -> Callable[..., Any]:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return refused


def test_a_node_without_room_for_a_process_keeps_its_journals(
    disk: Disk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal_queue.subprocess, "Popen", refuse(errno.EAGAIN))
    write(disk, 1)
    disk.start_segment(START_NS + 2 * NS_PER_S)
    assert told(disk, "stays a journal: Resource temporarily unavailable")
    write(disk, 3)
    disk.close()
    assert Store.open(directory).rows("cores", 0, 1 << 62).num_rows == 2


def test_rows_that_met_an_error_of_the_directory_are_a_gap(
    disk: Disk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert [row["time"] for row in store.rows("cores", 0, 1 << 62).to_pylist()] == [
        START_NS + NS_PER_S,
        START_NS + 3 * NS_PER_S,
    ]
    (gap,) = store.info().gaps
    assert (gap.table, gap.from_ns, gap.to_ns) == (
        "*",
        START_NS + NS_PER_S,
        START_NS + 2 * NS_PER_S,
    )


def recorded(directory: Path, table: str, *columns: str) -> list[tuple[int, ...]]:
    """Times of a table's rows, in seconds."""
    rows = Store.open(directory).rows(table, 0, 1 << 62).to_pylist()
    return [tuple((row[column] - START_NS) // NS_PER_S for column in columns) for row in rows]


def hang(disk: Disk, monkeypatch: pytest.MonkeyPatch, *seconds: int) -> None:
    """As if rows waited for a disk that takes none."""
    disk._waiting_rows += 1
    with monkeypatch.context() as patched:
        patched.setattr(disk_module, "_WAITING_ROWS", 0)
        for second in seconds:
            write(disk, second)
    disk._waiting_rows -= 1


def test_a_batch_larger_than_what_may_wait_is_written_when_nothing_waits(
    disk: Disk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_module, "_WAITING_ROWS", 0)
    write(disk, 3)
    disk.close()
    assert recorded(directory, "cores", "time") == [(3,)]
    assert (disk.take_notices(), disk.pauses) == ([], 0)


def test_a_disk_that_hangs_for_many_flushes_leaves_one_gap_for_all(
    disk: Disk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(disk, 3)
    hang(disk, monkeypatch, 6, 9, 12, 15)
    assert not disk.take_loss(), "what comes now is lost too: a new segment would not help"
    for second in (18, 21):
        write(disk, second)
    assert disk.take_loss()
    disk.close()
    assert recorded(directory, "cores", "time") == [(3,), (18,), (21,)]
    assert recorded(directory, "gaps", "time", "end") == [(3, 15)]
    (gap,) = Store.open(directory).info().gaps
    assert (gap.table, gap.lost, disk.pauses) == ("*", 4, 1)
    assert disk.take_notices() == [
        "recording pauses: the disk did not take writes in time",
        "recording goes on",
    ]


def test_a_disk_that_hangs_until_the_end_leaves_a_gap(
    disk: Disk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(disk, 3)
    hang(disk, monkeypatch, 6, 9)
    disk.close()
    assert recorded(directory, "gaps", "time", "end") == [(3, 9)]


def test_the_gap_of_a_disk_that_hung_outlives_a_batch_that_cannot_be_written(
    disk: Disk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang(disk, monkeypatch, 3, 6)
    disk.write(Batch({"no such table": [()]}), 0, START_NS + 9 * NS_PER_S)
    write(disk, 12)
    disk.close()
    assert recorded(directory, "cores", "time") == [(12,)]
    gaps = recorded(directory, "gaps", "time", "end")
    assert {(0, 6), (6, 9)} <= set(gaps)


def test_the_rows_that_met_the_free_space_floor_are_in_the_gap(
    disk: Disk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(disk, 3)
    wait_for_row(directory)
    monkeypatch.setattr(disk_module, "_KEEP_HOUSE_S", -1.0)
    monkeypatch.setattr(disk_module.os, "statvfs", space(0.0))
    write(disk, 6)
    wait_for_all_before_a_pin(disk, directory)
    assert told(disk, "short of its free-space floor of 1%; free space, or lower --free-floor")
    monkeypatch.setattr(disk_module.os, "statvfs", space(0.5))
    write(disk, 9)
    disk.close()
    assert recorded(directory, "cores", "time") == [(3,), (9,)]
    assert recorded(directory, "gaps", "time", "end") == [(3, 6)]


def test_closing_ends_though_the_directory_is_gone(disk: Disk, directory: Path) -> None:
    write(disk, 1)
    wait_for_row(directory)
    shutil.rmtree(directory)
    disk.close()


def test_a_pin_that_cannot_be_written_is_told(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_module, "write_pins", refuse(errno.EROFS))
    disk.pin(Pin(START_NS, START_NS + NS_PER_S, "core_held: core 1"))
    assert told(disk, "Read-only file system")


def add_sealed(directory: Path, *minutes: int) -> None:
    for minute in minutes:
        segment = directory / segment_name(START_NS + minute * 60 * NS_PER_S)
        segment.mkdir()
        (segment / "manifest.json").write_bytes(bytes(10))
    # Its own clock may stand still between two changes that follow at once.
    os.utime(directory, ns=(0, minutes[-1]))


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """The first arguments of all calls to come."""
    asked: list[Any] = []
    real = getattr(disk_module, name)
    monkeypatch.setattr(
        disk_module, name, lambda argument: asked.append(argument) or real(argument)
    )
    return asked


def test_segments_are_listed_again_only_when_the_directory_changed_and_each_is_measured_once(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings, parsed = (
        count_calls(monkeypatch, "segment_paths"),
        count_calls(monkeypatch, "segment_start_ns"),
    )
    add_sealed(directory, -3, -2)
    disk = open_disk(directory)
    for _ in range(3):
        disk._keep_house(START_NS)
    assert (len(listings), len(parsed), disk.segments, disk.size_bytes) == (1, 2, 2, 20)
    add_sealed(directory, -1)
    for _ in range(3):
        disk._keep_house(START_NS)
    assert (len(listings), len(parsed), disk.segments, disk.size_bytes) == (2, 3, 3, 30)
    disk.close()


def test_a_pin_that_came_since_the_last_listing_keeps_its_segments_when_room_is_made(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_sealed(directory, -3, -2, -1)
    disk = open_disk(directory)
    monkeypatch.setattr(disk_module, "write_pins", refuse(errno.EROFS))
    disk.pin(Pin(START_NS - 170 * NS_PER_S, START_NS - 160 * NS_PER_S, "core_held: core 1"))
    assert told(disk, "Read-only file system")
    disk._make_room(errno.ENOSPC)
    assert [segment_start_ns(path.name) for path in segment_paths(directory)] == [
        START_NS - minute * 60 * NS_PER_S for minute in (3, 1)
    ]
    assert (disk.segments, disk.size_bytes) == (2, 20)
    disk.close()


def add_journals(directory: Path, *minutes: int) -> list[Path]:
    """As a recorder that could not seal leaves them, of a thousand bytes each."""
    journals = [
        directory / f"{segment_name(START_NS + minute * 60 * NS_PER_S)}.live" for minute in minutes
    ]
    for journal in journals:
        journal.mkdir()
        (journal / "journal").write_bytes(bytes(1000))
    return journals


class Child:
    """A sealing child that ends when it is told to."""

    def __init__(self, command: list[str], **_: object) -> None:
        self.journal = Path(command[-1])
        self.unfinished = self.journal.with_suffix(".sealing")
        self.unfinished.mkdir()
        (self.unfinished / "samples.parquet").write_bytes(bytes(100))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float) -> None:
        self.returncode = self.returncode or -9

    def kill(self) -> None:
        self.returncode = -9


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[Child]:
    """Those that were started, in order."""
    monkeypatch.setattr(disk_module.os, "statvfs", space(0.5))
    started: list[Child] = []

    def start(command: list[str], **words: object) -> Child:
        started.append(Child(command, **words))
        return started[-1]

    monkeypatch.setattr(seal_queue.subprocess, "Popen", start)
    return started


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def test_journals_that_wait_to_be_sealed_count_and_the_oldest_go_first(
    directory: Path, children: list[Child]
) -> None:
    journals = add_journals(directory, -5, -4, -3, -2)
    disk = open_disk(directory, max_bytes=3500)
    assert (disk.segments, disk.size_bytes) == (3, 3000)
    disk.start_segment(START_NS)
    wait_until(lambda: children)
    assert children[0].journal == journals[1], "the oldest that is left"
    disk._limits = Limits(2500, 1 << 60, 1 << 30)
    disk._listed = None
    disk._keep_house(START_NS)
    assert [path.name for path in segment_paths(directory)][:2] == [
        journals[1].name,
        journals[3].name,
    ], "the child's own stays"
    assert disk.size_bytes == 2000 + disk._live_bytes() > 2100
    disk.close()
    assert [child.journal for child in children] == [
        journals[1],
        journals[3],
        *(child.journal for child in children[2:]),
    ]


def test_a_child_that_was_killed_leaves_its_journal_a_gap_and_nothing_else(
    directory: Path, children: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    (journal,) = add_journals(directory, -5)
    disk = open_disk(directory)
    disk.start_segment(START_NS)
    wait_until(lambda: children)
    children[0].kill()
    assert told(
        disk,
        f"segment {journal.name} stays a journal: the process that seals was killed by signal 9",
    )
    assert not children[0].unfinished.exists()
    write(disk, 3)
    wait_for_row(directory)
    shutil.rmtree(journal)
    monkeypatch.undo()
    disk.close()
    (gap,) = Store.open(directory).info().gaps
    assert (gap.table, gap.from_ns, gap.to_ns) == (
        "core_minutes",
        START_NS - 300 * NS_PER_S,
        START_NS,
    )
    assert (gap.cause, disk.pauses) == (
        "the segment could not be sealed: the process that seals was killed by signal 9",
        0,
    )


def test_what_another_process_seals_is_not_removed(directory: Path, children: list[Child]) -> None:
    """A child that outlived its recorder holds the lock of the journal, and the one that met it
    failed.
    """
    (journal,) = add_journals(directory, -5)
    disk = open_disk(directory)
    disk.start_segment(START_NS)
    wait_until(lambda: children)
    lock = lock_directory(journal)
    assert lock is not None
    children[0].kill()
    assert told(disk, "stays a journal")
    assert children[0].unfinished.exists()
    os.close(lock)
    disk.close()


def test_journals_beyond_an_hour_of_them_stay_as_they_are(
    directory: Path, children: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal_queue, "MOST_WAITING", 2)
    journals = add_journals(directory, -5, -4, -3)
    disk = open_disk(directory)
    disk.start_segment(START_NS)
    assert told(
        disk, f"segment {journals[0].name} stays a journal: more than 2 segments wait to be sealed"
    )
    disk.close()
    assert [child.journal for child in children][:2] == journals[1:]
    assert journals[0].exists()
