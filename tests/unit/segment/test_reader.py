"""A segment answers for any window, live or sealed; what is damaged is a gap, never an exception
and never wrong.
"""

import os
import shutil
import zlib
from pathlib import Path

import pytest

from necroscope.model.reading import Gap
from necroscope.model.tables import TABLES
from necroscope.segment import live, table_writer
from necroscope.segment.arrow import schema_of
from necroscope.segment.kept_rows import KeptRows
from necroscope.segment.manifest import read_manifest
from necroscope.segment.reader import SegmentReader
from necroscope.segment.seal_writer import seal
from necroscope.segment.sealed_reader import SegmentGoneError

EVER = (-(1 << 63), (1 << 63) - 1)
START_NS = 1_760_000_000_000_000_000
NS = 1_000_000_000


@pytest.fixture(params=["live", "sealed"])
def segment(request, record, monkeypatch) -> Path:
    """Four seconds, in row groups of ten rows once sealed."""
    monkeypatch.setattr(table_writer, "GROUP_ROWS", 10)
    live = record()
    return live if request.param == "live" else seal(live)


def test_window_holds_its_start_and_not_its_end(segment):
    reader = SegmentReader(segment)
    for first, last in [(0, 4), (1, 2), (1, 3), (3, 99), (-5, 1), (4, 9), (2, 2), (3, 1)]:
        rows = reader.read("cores", START_NS + first * NS, START_NS + last * NS).to_pylist()
        seconds = range(max(first, 0), min(last, 4))
        assert [row["time"] for row in rows] == [
            START_NS + second * NS for second in seconds for _ in range(2)
        ]


def test_every_answer_has_the_schema_of_its_table(segment):
    reader = SegmentReader(segment)
    for name, table in TABLES.items():
        assert reader.read(name, *EVER).schema.equals(schema_of(table))
        assert reader.read(name, 0, 1).schema.equals(schema_of(table))
    assert reader.read("no_such_table", *EVER).num_rows == 0


def test_columns_come_in_the_order_asked_for_and_without_time(segment):
    rows = SegmentReader(segment).read("samples", START_NS, START_NS + NS, ["stack", "comm", "cpu"])
    assert rows.column_names == ["stack", "comm", "cpu"]
    assert rows.num_rows == 8
    assert SegmentReader(segment).read("nics", *EVER, ["value"]).column_names == ["value"]


def test_interned_tables_are_read_whole_for_any_window(segment):
    assert SegmentReader(segment).read("stacks", 0, 1).num_rows == 3
    assert SegmentReader(segment).read("frames", 0, 1).column("function").to_pylist() == [
        "start",
        None,
        "leaf",
    ]


def test_span_gaps_rows_and_sizes(segment):
    reader = SegmentReader(segment)
    assert reader.span == (START_NS, START_NS + 3 * NS + 300_000_001)
    assert reader.gaps() == [
        Gap("samples", START_NS + 2 * NS, START_NS + 2 * NS + 5, "ring overran", 1, 3)
    ]
    assert reader.tables["samples"] == 32
    assert (reader.node, reader.cpus, reader.idle_samples) == ("node-a", 2, 40)
    assert reader.bytes == sum(path.stat().st_size for path in segment.iterdir())


def test_only_what_the_window_touches_is_read(record, monkeypatch):
    monkeypatch.setattr(table_writer, "GROUP_ROWS", 8)
    sealed = seal(record())
    entry = read_manifest(sealed).tables["samples"]
    reader = SegmentReader(sealed)
    assert reader.read("samples", START_NS - 9 * NS, START_NS).num_rows == 0
    assert reader.bytes_read == 0
    assert reader.read("samples", START_NS + NS, START_NS + 2 * NS).num_rows == 8
    footer, second_group = entry.ranges[-1], entry.ranges[2]
    assert reader.bytes_read == footer[1] + second_group[1]


def test_kernel_log_from_before_the_segment_is_found_by_its_own_time(recording):
    from necroscope.segment.journal import JournalWriter, SegmentHeader
    from necroscope.segment.recording import new_segment_path

    live = new_segment_path(recording, START_NS)
    writer = JournalWriter(live, SegmentHeader("s", "n", "b", START_NS, 1))
    writer.append("log", [(START_NS - 500 * NS, 1, 6, 0, "booted"), (START_NS + 1, 2, 6, 0, "now")])
    writer.close()
    for path in (live, seal):
        reader = SegmentReader(path if isinstance(path, Path) else path(live))
        assert reader.span[0] == START_NS
        assert reader.reach == (START_NS - 500 * NS, START_NS + 1)
        assert reader.read("log", START_NS - 501 * NS, START_NS).column("message").to_pylist() == [
            "booted"
        ]


def flip(path: Path, position: int) -> None:
    with path.open("r+b", buffering=0) as file:
        (right,) = os.pread(file.fileno(), 1, position)
        os.pwrite(file.fileno(), bytes([right ^ 0x20]), position)


def test_flipped_byte_of_a_sealed_table_is_a_gap_in_that_row_group_only(record, monkeypatch):
    monkeypatch.setattr(table_writer, "GROUP_ROWS", 2)
    sealed = seal(record())
    path = sealed / "softirq_delay.parquet"
    right = SegmentReader(sealed).read("softirq_delay", *EVER).to_pylist()
    row_counts = set()
    for position in range(path.stat().st_size):
        flip(path, position)
        reader = SegmentReader(sealed)
        rows = reader.read("softirq_delay", *EVER).to_pylist()
        damage = [gap for gap in reader.gaps() if "checksum" in gap.cause]
        flip(path, position)
        missing = [row for row in right if row not in rows]
        assert rows in (right, right[2:], right[:2], [])
        assert [(gap.table, gap.lost) for gap in damage] == (
            [("softirq_delay", len(missing))] if missing else []
        )
        assert all(gap.from_ns <= row["time"] <= gap.to_ns for gap in damage for row in missing)
        row_counts.add((position >= 4, len(rows)))
    # Nobody needs the magic at the head of the file; every other byte matters.
    assert row_counts == {(False, 4), (True, 2), (True, 0)}


def test_a_row_group_that_cannot_be_decoded_costs_only_itself(record, monkeypatch):
    """Checksums are right, so it was written wrong: all groups are decoded together, and then one
    by one.
    """
    monkeypatch.setattr(table_writer, "GROUP_ROWS", 8)
    sealed = seal(record())
    right = SegmentReader(sealed).read("samples", *EVER).to_pylist()
    manifest = read_manifest(sealed)
    entry = manifest.tables["samples"]
    offset, length, _ = entry.ranges[2]
    with (sealed / "samples.parquet").open("r+b") as file:
        file.seek(offset)
        file.write(b"\xff" * length)
    entry.ranges[2] = offset, length, zlib.crc32(b"\xff" * length)
    manifest.write(sealed)
    reader = SegmentReader(sealed)
    assert reader.read("samples", *EVER).to_pylist() == right[:8] + right[16:]
    assert [(gap.table, gap.lost) for gap in reader.gaps() if gap.cause != "ring overran"] == [
        ("samples", 8)
    ]


def test_flipped_byte_of_the_manifest_is_a_gap_of_the_whole_segment(record):
    sealed = seal(record(seconds=1))
    span = SegmentReader(sealed).reach
    path = sealed / "manifest.json"
    for position in range(0, path.stat().st_size, 7):
        flip(path, position)
        reader = SegmentReader(sealed)
        assert reader.read("samples", *EVER).num_rows == 0
        (gap,) = reader.gaps()
        assert (gap.table, gap.from_ns, gap.to_ns) == ("*", *span)
        flip(path, position)


@pytest.mark.parametrize("damage", ["unlink", "cut", "grow", "empty"])
def test_lost_or_cut_table_is_a_gap_and_the_others_answer(record, damage):
    sealed = seal(record())
    path = sealed / "samples.parquet"
    size = path.stat().st_size
    if damage == "unlink":
        path.unlink()
    else:
        os.truncate(path, {"cut": size - 1, "grow": size + 1, "empty": 0}[damage])
    reader = SegmentReader(sealed)
    assert reader.read("samples", *EVER).num_rows == 0
    assert reader.read("cores", *EVER).num_rows == 8
    (gap,) = [gap for gap in reader.gaps() if "samples.parquet" in gap.cause]
    assert (gap.table, gap.lost, gap.from_ns) == ("samples", 32, START_NS)
    assert gap.to_ns > gap.from_ns


def test_verify_finds_damage_that_nobody_asked_for(record):
    sealed = seal(record())
    flip(sealed / "frames.parquet", 20)
    reader = SegmentReader(sealed)
    assert len(reader.gaps()) == 1
    assert [gap.table for gap in reader.verify()] == ["samples", "frames"]


def test_unknown_files_in_a_segment_do_not_matter(segment):
    (segment / "notes.txt").write_text("mine")
    (segment / "samples.parquet.bak").mkdir()
    assert SegmentReader(segment).read("samples", *EVER).num_rows == 32


def test_live_segment_grows_and_is_read_on_from_where_it_was(record):
    live = record(seconds=4)
    data = (live / "journal").read_bytes()
    os.truncate(live / "journal", len(data) // 2)
    reader = SegmentReader(live)
    seen, read = reader.tables["cores"], reader.bytes_read
    (live / "journal").write_bytes(data)
    reader.refresh()
    assert seen < reader.tables["cores"] == 8
    assert reader.bytes_read == len(data)
    assert read == len(data) // 2
    assert reader.read("cores", *EVER).num_rows == 8
    assert [gap.cause for gap in reader.gaps()] == ["ring overran"]


def test_counters_of_a_live_segment_are_read_from_its_file_once(record):
    reader = SegmentReader(record(seconds=4))
    first = reader.read("cores", *EVER)
    read = reader.bytes_read
    assert reader.read("cores", *EVER).equals(first)
    assert reader.bytes_read == read


def test_of_a_long_live_segment_the_newest_counters_stay_decoded(record, monkeypatch):
    reader = SegmentReader(record(seconds=8))
    newest = reader.span[1] - 1_500_000_000, EVER[1]
    monkeypatch.setattr(live, "_TAIL_BYTES", 1000)
    reader.read("cores", *EVER)
    last = reader.read("cores", *newest)
    read = reader.bytes_read
    assert reader.read("cores", *newest).equals(last)
    assert reader.bytes_read == read
    assert reader.read("cores", *EVER).num_rows == 16
    assert reader.bytes_read > read


def test_a_live_segment_that_grows_is_decoded_from_where_it_was(record):
    path = record(seconds=8)
    whole = SegmentReader(path).read("cores", *EVER)
    data = (path / "journal").read_bytes()
    os.truncate(path / "journal", len(data) // 2)
    reader = SegmentReader(path)
    late = whole.column("time")[4].as_py()
    for size in (len(data) // 2, len(data)):
        (path / "journal").write_bytes(data[:size])
        reader.refresh()
        known = reader.tables["cores"]
        assert reader.read("cores", *EVER).equals(whole.slice(0, known))
        # A later window, and an earlier one than before.
        assert reader.read("cores", late, EVER[1]).equals(whole.slice(4, known - 4))
    assert reader.read("cores", EVER[0], late).equals(whole.slice(0, 4))


def test_sealed_rows_that_are_read_again_are_not_decoded_again_within_bounds(record):
    segment = seal(record(seconds=4))
    kept = KeptRows(1 << 20)
    reader, plain = SegmentReader(segment, kept), SegmentReader(segment)
    assert reader.read("cores", *EVER).equals(plain.read("cores", *EVER))
    read = reader.bytes_read
    assert reader.read("cores", *EVER).equals(plain.read("cores", *EVER))
    assert reader.bytes_read == read
    assert reader.read("cores", *EVER, ["time", "cpu"]).column_names == ["time", "cpu"]
    assert reader.bytes_read > read
    small = KeptRows(100)
    reader = SegmentReader(segment, small)
    reader.read("cores", *EVER)
    read = reader.bytes_read
    reader.read("cores", *EVER)
    assert reader.bytes_read > read


def test_damage_of_a_live_segment_that_was_replaced_is_forgotten(record):
    path = record(seconds=4)
    data = (path / "journal").read_bytes()
    reader = SegmentReader(path)
    for position in range(200, len(data)):
        flip(path / "journal", position)
    assert reader.read("cores", *EVER).num_rows == 0
    assert any(gap.table == "cores" for gap in reader.gaps())
    (path / "journal").write_bytes(data[: len(data) - 1])
    reader.refresh()
    assert not any(gap.table == "cores" for gap in reader.gaps())


def test_a_live_segment_that_was_replaced_is_read_again(record):
    live = record(seconds=4)
    reader = SegmentReader(live)
    assert reader.read("cores", *EVER).num_rows == 8
    os.truncate(live / "journal", (live / "journal").stat().st_size // 2)
    reader.refresh()
    assert reader.read("cores", *EVER).num_rows < 8


def test_live_journal_that_became_shorter_is_read_anew(record):
    live = record(seconds=4)
    reader = SegmentReader(live)
    os.truncate(live / "journal", (live / "journal").stat().st_size // 2)
    reader.refresh()
    assert reader.read("cores", *EVER).num_rows == reader.tables["cores"] < 8


def test_frame_that_changed_after_the_scan_is_a_gap(record):
    live = record(seconds=1)
    reader = SegmentReader(live)
    for position in range(200, (live / "journal").stat().st_size):
        flip(live / "journal", position)
    assert reader.read("cores", *EVER).num_rows == 0
    assert any(gap.table == "cores" and gap.lost == 2 for gap in reader.gaps())


def test_segment_that_goes_away_says_so(segment):
    reader = SegmentReader(segment)
    shutil.rmtree(segment)
    with pytest.raises(SegmentGoneError):
        reader.read("cores", *EVER)
    with pytest.raises(SegmentGoneError):
        SegmentReader(segment)
