"""The disk's thread outlives what goes wrong around it, and what it could not write is a gap."""

import errno
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.unit.recorder.opened_disk import (
    START_NS,
    open_disk,
    refuse,
    says,
    space,
    wait_for_all_before_a_pin,
    wait_for_row,
    write,
)

from necroscope.model.units import NS_PER_S
from necroscope.recorder import disk as disk_module
from necroscope.recorder.disk import Disk
from necroscope.recorder.retention import RetentionLimits
from necroscope.recorder.sink import RowBatch
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import (
    Pin,
    new_segment_path,
    segment_name,
    segment_paths,
    segment_start_ns,
)
from necroscope.store.query import Store


def test_rows_that_met_an_error_of_the_directory_are_a_gap(
    disk: Disk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(disk, 1)
    wait_for_row(directory)
    with monkeypatch.context() as patched:
        patched.setattr(disk_module, "_KEEP_HOUSE_S", -1.0)
        patched.setattr(disk_module.os, "statvfs", refuse(errno.EIO))
        write(disk, 2)
        assert says(disk, "recording pauses: recording directory: [Errno 5]")
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
    disk._waiting_bytes += 1
    with monkeypatch.context() as patched:
        patched.setattr(disk_module, "_WAITING_BYTES", 0)
        for second in seconds:
            write(disk, second)
    disk._waiting_bytes -= 1


def test_a_batch_larger_than_what_may_wait_is_written_when_nothing_waits(
    disk: Disk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_module, "_WAITING_BYTES", 0)
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
    disk.write(RowBatch({"no such table": [()]}), 0, START_NS + 9 * NS_PER_S)
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
    assert says(disk, "short of its free-space floor of 1%; free space, or lower --free-floor")
    monkeypatch.setattr(disk_module.os, "statvfs", space(0.5))
    write(disk, 9)
    disk.close()
    assert recorded(directory, "cores", "time") == [(3,), (9,)]
    assert recorded(directory, "gaps", "time", "end") == [(3, 6)]


def test_what_a_cut_left_is_sealed_once_rows_of_ours_are_durable(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should this recorder be cut off too, the next one reads from that journal what was missed."""
    monkeypatch.setattr(disk_module.os, "statvfs", space(0.5))
    cut = new_segment_path(directory, START_NS - 60 * NS_PER_S)
    JournalWriter(cut, SegmentHeader(cut.name, "node-7", "boot", START_NS, 2)).close()
    disk = open_disk(directory)
    disk.start_segment(START_NS)
    wait_for_all_before_a_pin(disk, directory)
    assert disk._seals.sealing is None
    write(disk, 1)
    deadline = time.monotonic() + 10
    while disk._seals.sealing != cut and time.monotonic() < deadline:
        time.sleep(0.001)
    assert disk._seals.sealing == cut
    disk.close()
    assert not cut.exists()


def test_closing_ends_though_the_directory_is_gone(disk: Disk, directory: Path) -> None:
    write(disk, 1)
    wait_for_row(directory)
    shutil.rmtree(directory)
    disk.close()


def test_a_pin_that_cannot_be_written_is_reported(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_module, "write_pins", refuse(errno.EROFS))
    disk.pin(Pin(START_NS, START_NS + NS_PER_S, "core_held: core 1"))
    assert says(disk, "Read-only file system")


def test_many_pins_at_once_are_written_once(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[int] = []
    has_begun, may_end = threading.Event(), threading.Event()

    def write_slowly(_: Path, pins: list[Pin]) -> None:
        writes.append(len(pins))
        has_begun.set()
        may_end.wait(10)

    monkeypatch.setattr(disk_module, "write_pins", write_slowly)
    for core in range(448):
        second_ns = START_NS + 10 * core * NS_PER_S
        disk.pin(Pin(second_ns, second_ns + NS_PER_S, f"core_held: core {core}"))
        has_begun.wait(10)
    may_end.set()
    disk.close()
    assert writes == [1, 448]


def test_a_stepped_clock_makes_no_segment_too_old(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_sealed(directory, -3, -2)
    disk = open_disk(directory)
    disk._limits = RetentionLimits(1 << 30, 3600 * NS_PER_S, 1 << 30)
    disk._listed = None
    disk._last_time_ns += 365 * 86400 * NS_PER_S
    disk._keep_house(disk._last_time_ns)
    assert len(segment_paths(directory)) == 2
    disk.close()


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
    assert says(disk, "Read-only file system")
    disk._make_room(errno.ENOSPC)
    assert [segment_start_ns(path.name) for path in segment_paths(directory)] == [
        START_NS - minute * 60 * NS_PER_S for minute in (3, 1)
    ]
    assert (disk.segments, disk.size_bytes) == (2, 20)
    disk.close()
