"""Sealing loses nothing, may die after any step, and may be tried again."""

import os
import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from necroscope.errors import RecordingError
from necroscope.model.reading import Gap
from necroscope.model.tables import TABLES
from necroscope.segment import journal_reader, manifest, seal_writer, spans, table_writer
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.lock import lock_directory
from necroscope.segment.manifest import Manifest, read_manifest
from necroscope.segment.reader import SegmentReader
from necroscope.segment.recording import new_segment_path, remove_leftovers, segment_paths
from necroscope.segment.seal_writer import seal
from necroscope.segment.table_writer import ChecksummedSink, TableWriter

EVER = (-(1 << 63), (1 << 63) - 1)


def everything(path: Path) -> dict[str, list]:
    """All rows that were recorded, by table; the timed ones in order of time, as a sealed segment
    has them.
    """
    reader = SegmentReader(path)
    rows = {
        name: reader.read(name, *EVER).to_pylist()
        for name, table in TABLES.items()
        if not table.is_derived
    }
    recorded = {name: count for name, count in reader.tables.items() if not TABLES[name].is_derived}
    assert {name: len(found) for name, found in rows.items() if found} == recorded
    return {name: sorted(found, key=lambda row: row.get("time", 0)) for name, found in rows.items()}


def test_sealed_segment_holds_what_the_journal_held(record):
    live = record()
    before = everything(live)
    sealed = seal(live)
    assert sealed == live.with_name(live.name.removesuffix(".live"))
    assert not live.exists()
    assert everything(sealed) == before
    assert sealed.stat().st_mode & 0o777 == 0o700


def test_manifest_tells_what_info_needs_without_opening_a_table(record):
    live = record()
    reader = SegmentReader(live)
    found = read_manifest(seal(live))
    assert (found.from_ns, found.to_ns) == reader.span
    assert (found.node, found.boot_id, found.cpus, found.idle_samples, found.lost_samples) == (
        "node-a",
        "boot-1",
        2,
        40,
        3,
    )
    assert [(gap.table, gap.cause, gap.cpu, gap.lost) for gap in found.gaps] == [
        ("samples", "ring overran", 1, 3)
    ]
    assert (found.tables["samples"].rows, found.tables["stacks"].rows) == (32, 3)
    assert set(found.tables) == {
        "samples",
        "stacks",
        "frames",
        "cores",
        "core_minutes",
        "softirq_delay",
        "events",
        "gaps",
    }


def test_minutes_of_cores_are_derived_and_reach_no_further_than_what_was_recorded(record):
    live = record()
    reach = SegmentReader(live).reach
    sealed = SegmentReader(seal(live))
    minutes = sealed.read("core_minutes", *EVER).to_pylist()
    assert [(row["cpu"], row["time"] % (60 * 10**9)) for row in minutes[:2]] == [(0, 0), (1, 0)]
    assert minutes[0]["time"] < reach[0]
    assert minutes[0]["worst_delay_ns"] == 900
    assert sealed.reach == reach


def test_rows_with_nulls_are_no_ticks(recording):
    live = new_segment_path(recording, 10**18)
    writer = JournalWriter(live, SegmentHeader("s", "n", "b", 10**18, 1))
    writer.append("cores", [(10**18, 0, 10**9, *[None] * 9), (10**18, 1, 10**9, *[0] * 9)])
    writer.close()
    assert {
        row["cpu"] for row in SegmentReader(seal(live)).read("core_minutes", *EVER).to_pylist()
    } == {1}


def test_ranges_tile_every_file(record):
    sealed = seal(record())
    for name, entry in read_manifest(sealed).tables.items():
        data = (sealed / f"{name}.parquet").read_bytes()
        assert len(data) == entry.bytes
        assert [offset for offset, _, _ in entry.ranges] == [
            sum(e[1] for e in entry.ranges[:i]) for i in range(len(entry.ranges))
        ]
        assert sum(length for _, length, _ in entry.ranges) == len(data)
        assert len(entry.ranges) == 2 + pq.read_metadata(sealed / f"{name}.parquet").num_row_groups


def test_files_are_plain_parquet_for_others(record):
    sealed = seal(record())
    table = pq.read_table(sealed / "samples.parquet", page_checksum_verification=True)
    assert table.column_names == [column.name for column in TABLES["samples"].columns]
    assert table.num_rows == 32
    times = table.column("time").to_pylist()
    assert times == sorted(times)
    footer = pq.read_metadata(sealed / "samples.parquet")
    assert footer.metadata is None
    statistics = footer.row_group(0).column(0).statistics
    assert (statistics.min, statistics.max) == (times[0], times[-1])
    assert "DELTA_BINARY_PACKED" in footer.row_group(0).column(0).encodings
    assert footer.row_group(0).column(0).compression == "ZSTD"


def test_large_table_is_cut_into_row_groups(record, monkeypatch):
    monkeypatch.setattr(table_writer, "GROUP_ROWS", 10)
    live = record()
    before = everything(live)
    sealed = seal(live)
    footer = pq.read_metadata(sealed / "samples.parquet")
    assert [footer.row_group(i).num_rows for i in range(footer.num_row_groups)] == [8, 8, 8, 8], (
        "whole frames of 8 rows"
    )
    assert everything(sealed) == before


def rows_by_group(path: Path) -> list[int]:
    footer = pq.read_metadata(path)
    return [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]


def test_frame_larger_than_a_row_group_is_cut(record, monkeypatch):
    monkeypatch.setattr(table_writer, "GROUP_ROWS", 3)
    live = record(seconds=1)
    before = everything(live)
    sealed = seal(live)
    assert rows_by_group(sealed / "samples.parquet") == [3, 3, 2]
    assert everything(sealed) == before


def test_row_group_of_long_texts_has_few_rows(recording, monkeypatch):
    monkeypatch.setattr(table_writer, "_GROUP_BYTES", 1000)
    monkeypatch.setattr(table_writer, "_SMALL_BATCHES", 1)
    live = new_segment_path(recording, 10**18)
    writer = JournalWriter(live, SegmentHeader("s", "n", "b", 10**18, 1))
    for second in range(4):
        writer.append("log", [(10**18 + second, second, 6, 0, "x" * (900 if second < 2 else 10))])
        writer.flush()
    writer.close()
    sealed = seal(live)
    assert rows_by_group(sealed / "log.parquet") == [2, 2]
    assert [row["sequence"] for row in everything(sealed)["log"]] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "most_stretches", [0, 1000], ids=["sorted by Arrow", "stretches put in order"]
)
def test_rows_out_of_order_are_sorted_by_time(recording, monkeypatch, most_stretches):
    monkeypatch.setattr(table_writer, "_MOST_STRETCHES", most_stretches)
    live = new_segment_path(recording, 10**18)
    writer = JournalWriter(live, SegmentHeader("s", "n", "b", 10**18, 1))
    writer.append(
        "samples",
        [(10**18 + i, 0, i, i, f"comm-{i}", None, 0, 1) for i in (3, 4, 5, 9, 1, 2, 7, 8, 6, 0)],
    )
    writer.close()
    rows = pq.read_table(seal(live) / "samples.parquet").to_pylist()
    assert [(row["pid"], row["comm"]) for row in rows] == [(i, f"comm-{i}") for i in range(10)]


def test_many_small_frames_share_one_dictionary(recording):
    """Names as they differ from frame to frame: Parquet stores them plain, row by row, where the
    dictionaries differ.
    """
    live = new_segment_path(recording, 10**18)
    writer = JournalWriter(live, SegmentHeader("s", "n", "b", 10**18, 1))
    for second in range(200):
        writer.append(
            "samples", [(10**18 + second, 0, 1, 1, f"a-name-of-its-own-{second % 7}", None, 0, 1)]
        )
        writer.flush()
    writer.close()
    comm = pq.read_metadata(seal(live) / "samples.parquet").row_group(0).column(4)
    assert (comm.path_in_schema, "PLAIN" in comm.encodings, comm.total_uncompressed_size < 500) == (
        "comm",
        True,
        True,
    )


def test_journal_that_reads_differently_the_second_time_stays(record, monkeypatch):
    live = record(seconds=2)
    before = everything(live)
    frames = len(list(journal_reader.read_blocks(live / "journal")))
    tries = iter(range(2 * frames))
    monkeypatch.setattr(journal_reader, "is_intact", lambda *_: next(tries) < frames)
    with pytest.raises(OSError, match="has no right block at byte"):
        seal(live)
    monkeypatch.undo()
    assert {path.name for path in live.parent.iterdir()} == {live.name, "recording.json"}
    assert everything(live) == before


def test_another_pyarrow_writes_the_same_files(record, monkeypatch):
    live = record()
    shutil.copytree(live.parent, live.parent.with_name("copy"))
    sealed = seal(live)
    monkeypatch.setitem(sys.modules, "pyarrow._parquet", None)
    other = seal(live.parent.with_name("copy") / live.name)
    assert {path.name: path.read_bytes() for path in other.iterdir()} == {
        p.name: p.read_bytes() for p in sealed.iterdir()
    }


def test_damaged_journal_is_sealed_with_a_gap(record):
    live = record()
    data = bytearray((live / "journal").read_bytes())
    data[len(data) // 2] ^= 4
    (live / "journal").write_bytes(data)
    before, gaps = everything(live), SegmentReader(live).gaps()
    sealed = seal(live)
    assert SegmentReader(sealed).gaps() == gaps
    assert any("journal damaged" in gap.cause for gap in gaps)
    rows = everything(sealed)
    assert rows.pop("gaps") != before.pop("gaps")
    assert rows == before


def test_journal_without_its_header_is_sealed_by_its_name(record):
    live = record(seconds=1)
    data = bytearray((live / "journal").read_bytes())
    data[70] ^= 1
    (live / "journal").write_bytes(data)
    found = read_manifest(seal(live))
    assert (found.node, found.cpus, found.tables["cores"].rows) == ("", None, 2)


def test_segment_without_rows_and_segment_of_one_row(recording):
    for rows in ([], [(5, "cpu", 1, None, 0)]):
        live = new_segment_path(recording, 10**18)
        writer = JournalWriter(live, SegmentHeader("s", "n", "b", 10**18, 1))
        writer.append("pressure", rows)
        writer.close()
        sealed = seal(live)
        assert SegmentReader(sealed).read("pressure", *EVER).num_rows == len(rows)
        assert SegmentReader(sealed).tables == ({"pressure": 1} if rows else {})
        shutil.rmtree(sealed)


def test_live_directory_without_a_journal_is_removed(recording):
    live = new_segment_path(recording, 10**18)
    live.mkdir()
    assert SegmentReader(live).read("cores", *EVER).num_rows == 0
    assert seal(live) is None
    assert segment_paths(recording) == []


def test_nothing_to_seal(recording):
    assert seal(recording / "2026-11-15T22-03-13.123Z.live") is None


def test_two_sealers_do_not_meet(record):
    live = record(seconds=1)
    lock = lock_directory(live)
    assert seal(live) is None
    assert live.exists()
    os.close(lock)
    assert seal(live) is not None
    assert seal(live) == live.with_name(live.name.removesuffix(".live"))


class PowerCut(BaseException):
    pass


STEPS = [
    (TableWriter, "add"),
    (ChecksummedSink, "close"),
    (Manifest, "write"),
    (seal_writer, "sync_directory"),
    (Path, "rename"),
    (seal_writer, "add_span"),
    (shutil, "rmtree"),
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[step for _, step in STEPS])
def test_power_cut_at_any_step_loses_nothing(record, monkeypatch, owner, step, after):
    live = record(seconds=3)
    recording, before = live.parent, everything(live)
    true_step = getattr(owner, step)
    with monkeypatch.context() as patch:
        # A process that is killed cleans nothing up.
        patch.setattr(seal_writer.shutil, "rmtree", lambda *_, **__: None)

        def cut(*args: object, **kwargs: object) -> None:
            if after:
                true_step(*args, **kwargs)
            if step != "rmtree" or str(args[0]).endswith(".live"):
                raise PowerCut

        patch.setattr(owner, step, cut)
        with pytest.raises(PowerCut):
            seal(live)
    (present,) = segment_paths(recording)
    assert everything(present) == before
    for unsealed in remove_leftovers(recording):
        seal(unsealed)
    (present,) = segment_paths(recording)
    assert present.name == live.name.removesuffix(".live")
    assert everything(present) == before
    assert {path.name for path in recording.iterdir()} <= {
        present.name,
        "recording.json",
        "spans.json",
    }


def test_full_disk_leaves_the_journal_and_no_garbage(record, monkeypatch):
    live = record(seconds=2)
    before = everything(live)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ChecksummedSink, "write", full)
        with pytest.raises(OSError, match="No space"):
            seal(live)
    assert {path.name for path in live.parent.iterdir()} == {live.name, "recording.json"}
    assert everything(live) == before


def test_sealed_segment_with_a_broken_manifest_is_sealed_again_while_the_journal_is_there(record):
    live = record(seconds=1)
    before = everything(live)
    copy = live.parent.parent / "copy"
    shutil.copytree(live, copy)
    sealed = seal(live)
    (sealed / "manifest.json").write_text("{}")
    shutil.copytree(copy, live)
    assert seal(live) == sealed
    assert everything(sealed) == before


def test_journal_of_a_newer_necroscope_is_left_alone(record, monkeypatch):
    live = record(seconds=1)
    monkeypatch.setattr("necroscope.segment.versions.LAYOUTS", {0: {}})
    with pytest.raises(RecordingError, match="schema 1"):
        seal(live)
    assert live.exists()


def test_very_many_gaps_are_merged_in_the_manifest_and_whole_in_the_table(recording, monkeypatch):
    monkeypatch.setattr(seal_writer, "GAP_LIMIT", 5)
    live = new_segment_path(recording, 10**18)
    writer = JournalWriter(live, SegmentHeader("s", "n", "b", 10**18, 1))
    gaps = [Gap("samples", 10**18 + i, 10**18 + i + 1, "ring overran", i % 2, 2) for i in range(20)]
    writer.append("gaps", [gap.row() for gap in gaps])
    writer.close()
    sealed = seal(live)
    found = read_manifest(sealed)
    assert len(found.gaps) == 2
    assert (found.gaps_are_merged, found.lost_samples, manifest.GAP_LIMIT) == (True, 40, 200)
    assert SegmentReader(sealed).gaps() == gaps


def test_spans_know_every_sealed_segment_and_forget_removed_ones(record):
    first, second = (seal(record(seconds=1, start_ns=10**18 + i * 10**9)) for i in range(2))
    known = spans.read_spans(first.parent)
    assert known == {path.name: SegmentReader(path).reach for path in (first, second)}
    shutil.rmtree(first)
    third = seal(record(seconds=1, start_ns=10**18 + 5 * 10**9))
    assert set(spans.read_spans(third.parent)) == {second.name, third.name}
    (third.parent / "spans.json").write_text("junk")
    assert spans.read_spans(third.parent) == {}
