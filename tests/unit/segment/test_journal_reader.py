"""A damaged journal gives a part of what was written, unaltered, and a gap for the rest; never an
exception.
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.decoded_block import decode_block

from necroscope.model.tables import TABLES
from necroscope.segment.block import MAGIC, Block
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.journal_reader import Hole, JournalReader, read_blocks

START_NS = 1_000


def write(directory: Path) -> Path:
    """A small journal: a header, then frames of three tables, some with text that looks like a
    frame.
    """
    writer = JournalWriter(directory, SegmentHeader("s", "n", "b", START_NS, 2))
    for i in range(3):
        writer.append("pressure", [(START_NS + i * 10, "cpu", 10, i, None)])
        writer.append("stacks", [(i, i - 1, 7)])
        writer.append("log", [(START_NS + i * 10 + 1, i, 6, 0, "NCJ" + "\xff" * 4 + str(i))])
        writer.flush()
    writer.close()
    return writer.path


@dataclass
class Scan:
    rows: list[tuple] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])


def scan(path: Path) -> Scan:
    """All rows and holes; frames and holes must follow each other without a break."""
    found = Scan()
    for item in read_blocks(path):
        if isinstance(item, Hole):
            start, end = item.from_byte, item.to_byte
            found.holes.append(item)
        else:
            start, end = item.offset, item.offset + item.header.block_bytes
            if table := TABLES.get(item.header.name):
                found.rows += [(table.name, row) for row in decode_block(table, item)]
        assert start == found.ends[-1]
        found.ends.append(end)
    return found


@contextmanager
def flipped_byte(path: Path, position: int, bits: int) -> Iterator[None]:
    """In place, because to write a file again costs the disk milliseconds."""
    with path.open("r+b", buffering=0) as file:
        right = os.pread(file.fileno(), 1, position)
        os.pwrite(file.fileno(), bytes([right[0] ^ bits]), position)
        yield
        os.pwrite(file.fileno(), right, position)


def is_part_of(part: list, whole: list) -> bool:
    """In the same order, with holes."""
    rest = iter(whole)
    return all(row in rest for row in part)


def test_whole_journal_has_no_holes(tmp_path):
    whole = scan(write(tmp_path / "x.live"))
    assert not whole.holes
    assert len(whole.rows) == 9


def test_cut_at_every_byte_gives_what_was_whole_before_the_cut(tmp_path):
    path = write(tmp_path / "x.live")
    data, whole = path.read_bytes(), scan(path)
    counts = set()
    for length in reversed(range(len(data))):
        os.truncate(path, length)
        cut = scan(path)
        assert cut.rows == whole.rows[: len(cut.rows)]
        assert cut.ends[-1] == length
        assert bool(cut.holes) == (length not in whole.ends)
        counts.add(len(cut.rows))
    assert counts == set(range(9))


def test_flipped_anywhere_gives_all_other_frames_and_a_hole(tmp_path):
    path = write(tmp_path / "x.live")
    data, whole = path.read_bytes(), scan(path)
    for position in range(len(data)):
        with flipped_byte(path, position, 1 << position % 8):
            flipped = scan(path)
        assert is_part_of(flipped.rows, whole.rows)
        assert len(flipped.rows) >= len(whole.rows) - 1
        assert len(flipped.holes) == 1
        assert flipped.ends[-1] == len(data)


def test_random_damage_never_raises_and_never_alters(tmp_path):
    path = write(tmp_path / "x.live")
    data, whole = path.read_bytes(), scan(path)
    dice = random.Random(7)
    for _ in range(300):
        start, length = dice.randrange(len(data)), dice.randrange(200)
        junk = dice.choice([bytes(length), MAGIC * (length // 4), dice.randbytes(length), b""])
        path.write_bytes(data[:start] + junk + data[start + length :])
        assert is_part_of(scan(path).rows, whole.rows)
        reader = JournalReader(path.parent, START_NS)
        list(reader.advance())
        assert all(gap.from_ns <= gap.to_ns for gap in reader.gaps)


def test_hole_is_a_gap_between_the_times_around_it(tmp_path):
    path = write(tmp_path / "x.live")
    frames = [item for item in read_blocks(path) if isinstance(item, Block)]
    second_log = [frame for frame in frames if frame.header.name == "log"][1]
    data = bytearray(path.read_bytes())
    data[second_log.offset + 70] ^= 1
    path.write_bytes(data)
    reader = JournalReader(path.parent, START_NS)
    list(reader.advance())
    (gap,) = reader.gaps
    assert (gap.table, gap.from_ns, gap.to_ns) == ("*", START_NS + 10, START_NS + 20)
    assert "journal damaged" in gap.cause


def test_lost_header_is_a_gap_and_rows_are_still_there(tmp_path):
    path = write(tmp_path / "x.live")
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    reader = JournalReader(path.parent, START_NS)
    assert len(list(reader.advance())) == 9
    assert reader.header is None
    assert [(gap.from_ns, gap.to_ns) for gap in reader.gaps] == [(START_NS, START_NS)]


def test_advance_gives_only_what_came_since(tmp_path):
    writer = JournalWriter(tmp_path / "x.live", SegmentHeader("s", "n", "b", START_NS, 2))
    reader = JournalReader(tmp_path / "x.live", START_NS)
    assert list(reader.advance()) == []
    for i in range(3):
        writer.append("stacks", [(i, -1, 0)])
        writer.flush()
        assert [frame.header.name for frame in reader.advance()] == ["stacks"]
    writer.close()
    assert reader.gaps == []


def test_half_written_frame_is_no_gap_once_it_is_whole(tmp_path):
    path = write(tmp_path / "x.live")
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    reader = JournalReader(path.parent, START_NS)
    seen = len(list(reader.advance()))
    assert len(reader.gaps) == 1
    path.write_bytes(data)
    assert seen + len(list(reader.advance())) == 9
    assert reader.gaps == []


def test_hole_before_a_frame_without_time_is_kept_until_the_time_is_known(tmp_path):
    writer = JournalWriter(tmp_path / "x.live", SegmentHeader("s", "n", "b", START_NS, 2))
    with writer.path.open("ab") as file:
        file.write(b"torn")
    writer.size_bytes += 4
    writer.append("stacks", [(0, -1, 0)])
    writer.flush()
    reader = JournalReader(tmp_path / "x.live", START_NS)
    list(reader.advance())
    assert [gap.to_ns for gap in reader.gaps] == [START_NS]
    writer.append("pressure", [(START_NS + 50, "cpu", 1, 1, 1)])
    writer.close()
    list(reader.advance())
    assert [(gap.from_ns, gap.to_ns) for gap in reader.gaps] == [(START_NS, START_NS + 50)]


def test_disk_that_cannot_read_is_a_hole(tmp_path, monkeypatch):
    path = write(tmp_path / "x.live")
    monkeypatch.setattr("necroscope.segment.journal_reader._read_at", lambda *_: b"")
    assert [type(item) for item in read_blocks(path)] == [Hole]


@pytest.mark.parametrize(
    "content", [b"", b"x", MAGIC, MAGIC * 1000, bytes(100_000), b"\xff" * 70_000]
)
def test_file_that_is_no_journal_holds_nothing(tmp_path, content):
    path = tmp_path / "journal"
    path.write_bytes(content)
    assert scan(path).rows == []
    assert scan(path).ends[-1] == len(content)
