"""Cores of a recording: also those that went before its end, and those that come while it grows."""

from pathlib import Path

import pytest
from tests.written_recording import WrittenSegment, new_recording, tick

from necroscope.segment.reader import SegmentReader
from necroscope.store.query import Store
from necroscope.store.seen_cores import SeenCores


def test_a_core_that_went_offline_long_ago_is_known(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    WrittenSegment(recording, 0).ticks(0, 60, cpus=4).seal()
    WrittenSegment(recording, 300).ticks(300, 600).seal()
    assert SeenCores(Store.open(recording)).cpus() == [0, 1, 2, 3]


def test_a_core_that_comes_while_the_recording_grows_is_found(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    live = WrittenSegment(recording, 0).ticks(0, 10)
    seen = SeenCores(Store.open(recording))
    assert seen.cpus() == [0, 1]
    live.add("cores", tick(11, 7))
    assert seen.cpus() == [0, 1, 7]
    live.seal()
    WrittenSegment(recording, 20).ticks(20, 30, cpus=3)
    assert seen.cpus() == [0, 1, 2, 7]


def test_segments_as_large_as_the_one_before_are_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = new_recording(tmp_path / "r")
    for number in range(6):
        start = number * 300
        WrittenSegment(recording, start).ticks(
            start, start + 60, cpus=3 if number == 4 else 2
        ).seal()
    opened: list[str] = []
    read = SegmentReader.read
    monkeypatch.setattr(
        SegmentReader,
        "read",
        lambda self, *words: opened.append(self.path.name) or read(self, *words),
    )
    seen = SeenCores(Store.open(recording))
    assert seen.cpus() == seen.cpus() == [0, 1, 2]
    assert len(opened) == 3


def test_damaged_minutes_are_made_up_for_by_ticks(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    path = WrittenSegment(recording, 0).ticks(0, 60).seal().path.with_suffix("")
    file = path / "core_minutes.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)
    assert SeenCores(Store.open(recording)).cpus() == [0, 1]
