"""Journals become Parquet one by one, and those that cannot stay journals, with a gap."""

import errno
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.recorder.opened_disk import (
    START_NS,
    open_disk,
    refuse,
    says,
    space,
    wait_for_row,
    write,
)

from necroscope.model.units import NS_PER_S
from necroscope.recorder import disk as disk_module
from necroscope.recorder import seal_queue
from necroscope.recorder.disk import Disk
from necroscope.recorder.retention import RetentionLimits
from necroscope.segment.lock import lock_directory
from necroscope.segment.recording import (
    segment_name,
    segment_paths,
)
from necroscope.store.query import Store


def test_a_node_without_room_for_a_process_keeps_its_journals(
    disk: Disk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal_queue, "Child", refuse(errno.EAGAIN))
    write(disk, 1)
    disk.start_segment(START_NS + 2 * NS_PER_S)
    assert says(disk, "stays a journal: Resource temporarily unavailable")
    write(disk, 3)
    disk.close()
    assert Store.open(directory).rows("cores", 0, 1 << 62).num_rows == 2


def add_journals(directory: Path, *minutes: int) -> list[Path]:
    """As a recorder that could not seal leaves them, of a thousand bytes each."""
    journals = [
        directory / f"{segment_name(START_NS + minute * 60 * NS_PER_S)}.live" for minute in minutes
    ]
    for journal in journals:
        journal.mkdir()
        (journal / "journal").write_bytes(bytes(1000))
    return journals


class SealingChild:
    """A sealing child that ends when it is told to."""

    def __init__(self, command: list[str], **_: object) -> None:
        self.journal = Path(command[-1])
        self.unfinished = self.journal.with_suffix(".sealing")
        self.unfinished.mkdir()
        (self.unfinished / "samples.parquet").write_bytes(bytes(100))
        self.returncode: int | None = None
        self.is_late = False

    @property
    def status(self) -> int | None:
        return self.returncode

    def wait(self, seconds: float) -> None:
        self.returncode = self.returncode or -9

    def end(self, seconds: float) -> None:
        """The kernel may not let it go."""


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[SealingChild]:
    """Those that were started, in order."""
    monkeypatch.setattr(disk_module.os, "statvfs", space(0.5))
    started: list[SealingChild] = []

    def start(command: list[str], **words: object) -> SealingChild:
        started.append(SealingChild(command, **words))
        return started[-1]

    monkeypatch.setattr(seal_queue, "Child", start)
    return started


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def test_journals_that_wait_to_be_sealed_count_and_the_oldest_go_first(
    directory: Path, children: list[SealingChild]
) -> None:
    journals = add_journals(directory, -5, -4, -3, -2)
    disk = open_disk(directory, max_bytes=3500)
    disk._seals.release()
    assert (disk.segments, disk.size_bytes) == (3, 3000)
    disk.start_segment(START_NS)
    wait_until(lambda: children)
    assert children[0].journal == journals[1], "the oldest that is left"
    disk._limits = RetentionLimits(2500, 1 << 60, 1 << 30)
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
    directory: Path, children: list[SealingChild], monkeypatch: pytest.MonkeyPatch
) -> None:
    (journal,) = add_journals(directory, -5)
    disk = open_disk(directory)
    disk._seals.release()
    disk.start_segment(START_NS)
    wait_until(lambda: children)
    children[0].returncode = -9
    assert says(
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


def test_what_another_process_seals_is_not_removed(
    directory: Path, children: list[SealingChild]
) -> None:
    """A child that outlived its recorder holds the lock of the journal, and the one that met it
    failed.
    """
    (journal,) = add_journals(directory, -5)
    disk = open_disk(directory)
    disk._seals.release()
    disk.start_segment(START_NS)
    wait_until(lambda: children)
    lock = lock_directory(journal)
    assert lock is not None
    children[0].returncode = -9
    assert says(disk, "stays a journal")
    assert children[0].unfinished.exists()
    os.close(lock)
    disk.close()


def test_journals_beyond_an_hour_of_them_stay_as_they_are(
    directory: Path, children: list[SealingChild], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal_queue, "MOST_WAITING", 2)
    journals = add_journals(directory, -5, -4, -3)
    disk = open_disk(directory)
    disk._seals.release()
    disk.start_segment(START_NS)
    assert says(
        disk, f"segment {journals[0].name} stays a journal: more than 2 segments wait to be sealed"
    )
    disk.close()
    assert [child.journal for child in children][:2] == journals[1:]
    assert journals[0].exists()


def test_a_child_that_the_kernel_does_not_let_go_is_left(
    directory: Path, children: list[SealingChild]
) -> None:
    (journal,) = add_journals(directory, -5)
    disk = open_disk(directory)
    disk._seals.release()
    disk.start_segment(START_NS)
    wait_until(lambda: children)
    children[0].is_late = True
    assert says(disk, f"segment {journal.name} stays a journal: the process that seals did not end")
    assert children[0].status is None
    disk.close()
