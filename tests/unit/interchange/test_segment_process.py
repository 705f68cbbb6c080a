"""Segments written by another process are those that this one would write, and its errors are ours."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from necroscope.errors import RecordingError
from necroscope.interchange.capture import SampleBatch
from necroscope.interchange.forked import Forked
from necroscope.interchange.interned import Interned
from necroscope.interchange.segment_process import SegmentProcess, Segments, open_segments
from necroscope.model.frame import Frame
from necroscope.model.reading import Gap
from necroscope.segment.reader import SegmentReader

pytestmark = pytest.mark.one_thread
LARGE = 1 << 30
START_NS = 1_790_000_000_000_000_000
MINUTE_NS = 60_000_000_000


def batch(interned: Interned, minute: int, *names: str) -> SampleBatch:
    """One sample a name, each with a stack of its own below `main`."""
    tree = interned.stacks
    frames = [tree.frame(Frame(text, "m", "user", None, None)) for name in names for text in ("main", name)]
    stacks = tree.stacks(np.array(frames, np.int32), np.full(len(names), 2, np.int64))
    comms = np.array([interned.comms.number(name) for name in names], np.int32)
    times = START_NS + minute * MINUTE_NS + np.arange(len(names))
    small = np.ones(len(names), np.int32)
    unknown = np.full(len(names), -1, np.int32)
    return SampleBatch(times, small, small, small, comms, unknown, small * 0, np.ones(len(names), np.int64), stacks)


def fill(segments: Segments, interned: Interned) -> None:
    for minute, names in enumerate((("a", "b"), ("b", "c"), ("a", "d"))):
        added = batch(interned, 4 * minute, *names)
        segments.add_samples(added, np.zeros(len(added), bool), int(added.time_ns[0]))
        segments.close_before(int(added.time_ns[0]) - 1)
    segments.add_rows("log", iter([(START_NS, None, 6, 0, "a line")]))
    segments.add_gap(Gap("samples", START_NS, START_NS + 5, "a reason"))
    segments.close()


def content(directory: Path) -> list[object]:
    readers = [SegmentReader(path) for path in sorted(directory.iterdir()) if path.is_dir()]
    return [
        (reader.span, reader.gaps(), {name: reader.read(name, 0, 1 << 62).to_pylist() for name in reader.tables})
        for reader in readers
    ]


def opened(directory: Path, interned: Interned, size_bytes: int) -> Segments:
    directory.mkdir()
    return open_segments(directory, interned, "node-7", 2, size_bytes)


def test_what_it_writes_is_what_this_process_would_write(tmp_path: Path) -> None:
    found = []
    for size_bytes in (0, LARGE):
        interned = Interned()
        segments = opened(tmp_path / str(size_bytes), interned, size_bytes)
        assert isinstance(segments, SegmentProcess) == (size_bytes == LARGE)
        fill(segments, interned)
        found.append((content(tmp_path / str(size_bytes)), segments.rows, segments.size_bytes, segments.spans))
    assert found[0] == found[1]
    assert len(found[0][0]) > 1


def test_its_error_is_raised_here(tmp_path: Path) -> None:
    segments = opened(tmp_path / "d", Interned(), LARGE)
    (tmp_path / "d").rmdir()
    with pytest.raises(FileNotFoundError):
        fill(segments, Interned())
    segments.abandon()


def test_killed_it_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    interned = Interned()
    segments = opened(tmp_path / "d", interned, LARGE)
    assert isinstance(segments, SegmentProcess)
    os.kill(segments._process.pid, signal.SIGKILL)
    with pytest.raises(RecordingError, match="ended from outside"):
        fill(segments, interned)
    segments.abandon()


def test_abandoned_while_another_process_is_at_work_it_ends(tmp_path: Path) -> None:
    """Were that one to hold the pipe of this one open, this would wait forever."""
    segments = opened(tmp_path / "d", Interned(), LARGE)
    other = Forked.start(lambda messages: messages.receive())
    segments.abandon()
    assert other is not None
    other.close()
