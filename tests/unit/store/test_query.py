"""Questions to a recording: right over segment borders, cheap outside the window, honest about
damage.
"""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from necroscope.model.reading import Gap
from necroscope.model.tables import TABLES
from necroscope.segment.arrow import schema_of
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.reader import SegmentReader
from necroscope.segment.recording import (
    Identity,
    Pin,
    make_recording,
    new_segment_path,
    remove_segment,
    write_pins,
)
from necroscope.segment.seal_writer import seal
from necroscope.store.query import Store

START_NS = 1_760_000_000_000_000_000
NS = 1_000_000_000
EVER = (-(1 << 63), (1 << 63) - 1)


def at(second: float) -> int:
    return START_NS + int(second * NS)


@pytest.fixture(params=[0, 1, 3], ids=["sealed", "one live", "all live"])
def store(request, write) -> Store:
    return Store.open(write(3, live=request.param))


def test_rows_follow_each_other_over_segments(store):
    rows = store.rows("cores", at(8), at(23))
    assert rows.column("time").to_pylist() == [at(s) for s in range(8, 23) for _ in range(2)]
    assert set(rows.column("user_ns").to_pylist()) == {0, 1, 2}
    assert rows.schema.equals(schema_of(TABLES["cores"]))


def test_samples_of_several_rings_come_in_order_of_time(store):
    times = store.rows("samples", *EVER).column("time").to_pylist()
    assert len(times) == 60
    assert times == sorted(times)


def test_categories_of_all_segments_share_one_dictionary(store):
    comm = store.rows("samples", *EVER).column("comm")
    assert len({chunk.dictionary.to_pylist().__repr__() for chunk in comm.chunks}) == 1
    assert set(comm.to_pylist()) == {"comm-0", "comm-1", "comm-2"}


def test_cores_and_columns_can_be_chosen(store):
    rows = store.rows("samples", at(5), at(15), cpus={1}, columns=["comm", "stack"])
    assert rows.column_names == ["comm", "stack"]
    assert rows.num_rows == 10
    assert store.rows("samples", at(5), at(15), cpus=[]).num_rows == 0
    assert store.rows("gaps", *EVER, cpus=[0]).num_rows == 0, (
        "a row without a core belongs to no core"
    )


@pytest.mark.parametrize("table", TABLES)
def test_window_without_rows_is_an_empty_table(store, table):
    rows = store.rows(table, 0, 1)
    assert rows.schema.equals(schema_of(TABLES[table]))
    assert rows.num_rows == 0 or not TABLES[table].is_timed
    assert store.rows("no_such_table", *EVER).num_rows == 0


def test_only_segments_in_the_window_are_touched(write):
    store = Store.open(write(6))
    store.rows("cores", at(12), at(13))
    readers = store.catalog._readers
    assert [path.name for path in readers] == [store.catalog.segments[1].path.name]
    (reader,) = readers.values()
    assert reader.bytes_read == (reader.path / "cores.parquet").stat().st_size - 4, (
        "all of a small table but its head"
    )
    store.samples(at(12), at(13))
    assert len(readers) == 1


def test_cost_of_a_window_does_not_grow_with_the_recording(write, tmp_path):
    counts = []
    for segments in (2, 12):
        store = Store.open(write(segments))
        store.samples(at(2), at(9))
        store.rows("cores", at(2), at(9))
        counts.append(
            (
                len(store.catalog._readers),
                sum(reader.bytes_read for reader in store.catalog._readers.values()),
            )
        )
        shutil.rmtree(tmp_path / "recording")
    assert counts[0] == counts[1]


def test_stacks_of_segments_are_merged_into_one_tree(store):
    window = store.samples(at(0), at(30))
    assert window.samples.num_rows == 60
    function = window.frames.column("function").to_pylist()
    assert sorted(function, key=str) == [None, "work"]
    path_of = {}
    for row in window.stacks.to_pylist():
        assert row["stack"] == len(path_of)
        path_of[row["stack"]] = [*path_of.get(row["parent"], []), function[row["frame"]]]
    assert list(path_of.values()) == [[None], [None, "work"]]
    paths = [path_of[stack] for stack in window.samples.column("stack").to_pylist()]
    assert paths == [
        [None, "work"] if second % 2 else [None] for second in range(30) for _ in range(2)
    ]


def test_samples_of_some_cores(store):
    assert set(store.samples(at(0), at(30), cpus=[1]).samples.column("cpu").to_pylist()) == {1}
    empty = store.samples(at(0), at(30), cpus=[9])
    assert (empty.samples.num_rows, empty.stacks.num_rows, empty.frames.num_rows) == (0, 0, 0)
    assert empty.samples.schema.equals(schema_of(TABLES["samples"]))


def test_gaps_that_touch_the_window(store):
    assert [gap.cause for gap in store.gaps(*EVER)] == ["cause 0", "cause 1", "cause 2"]
    assert [gap.cause for gap in store.gaps(at(10.5), at(10.6))] == ["cause 1"]
    assert store.gaps(at(12), at(13)) == []


def test_info_has_all_that_the_command_shows(store):
    write_pins(store.catalog.directory, [Pin(1, 2, "nic_reset")])
    info = store.info()
    assert (info.schema, info.node, info.labels, info.cpus, info.segments) == (
        1,
        "node-a",
        {"zone": "a"},
        2,
        3,
    )
    assert (info.from_ns, info.to_ns) == (at(0), at(29) + 1)
    recorded = {name: rows for name, rows in info.tables.items() if name != "core_minutes"}
    assert recorded == {"samples": 60, "stacks": 7, "frames": 6, "cores": 60, "gaps": 3}
    assert info.gaps == [Gap("cores", at(i * 10), at(i * 10 + 1), f"cause {i}") for i in range(3)]
    assert (info.lost_samples, info.idle_samples, info.pins) == (0, 15, [Pin(1, 2, "nic_reset")])
    assert info.bytes == sum(path.stat().st_size for path in store.catalog.directory.glob("20*/*"))


def test_info_opens_no_table(write, monkeypatch):
    store = Store.open(write(2))
    monkeypatch.setattr(SegmentReader, "read", lambda *_: pytest.fail("a table was read"))
    assert store.info().segments == 2


def test_empty_recording(write):
    store = Store.open(write(0))
    info = store.info()
    assert (info.from_ns, info.to_ns, info.cpus, info.segments, info.tables, info.gaps) == (
        None,
        None,
        None,
        0,
        {},
        [],
    )
    assert store.rows("cores", *EVER).num_rows == 0
    assert store.samples(*EVER).samples.num_rows == 0


def test_live_recording_is_always_up_to_date(tmp_path):
    directory = tmp_path / "r"
    make_recording(directory, Identity("n", "b", "t"))
    store = Store.open(directory)
    path = new_segment_path(directory, START_NS)
    writer = JournalWriter(path, SegmentHeader("s", "n", "b", START_NS, 1))
    for count in range(1, 4):
        writer.append("pressure", [(START_NS + count, "cpu", 1, None, None)])
        writer.flush()
        assert store.rows("pressure", *EVER).num_rows == count
    writer.close()
    seal(path)
    assert store.rows("pressure", *EVER).num_rows == 3


@pytest.mark.parametrize("change", ["sealed", "removed"])
def test_segment_that_changes_between_listing_and_reading_is_asked_anew(write, monkeypatch, change):
    store = Store.open(write(2, live=1))
    live = store.catalog.segments[1].path
    true_read = SegmentReader.read
    changes = [seal if change == "sealed" else remove_segment]

    def read_late(reader: SegmentReader, *args: object) -> pa.Table:
        if reader.path == live and changes:
            changes.pop()(live)
        return true_read(reader, *args)

    monkeypatch.setattr(SegmentReader, "read", read_late)
    assert store.rows("cores", *EVER).num_rows == (40 if change == "sealed" else 20)


def test_damage_is_a_gap_and_everything_else_answers(write):
    directory = write(2)
    first = min(directory.glob("20*"))
    data = bytearray((first / "samples.parquet").read_bytes())
    data[100] ^= 1
    (first / "samples.parquet").write_bytes(data)
    store = Store.open(directory)
    assert store.samples(*EVER).samples.num_rows == 20
    (gap,) = [gap for gap in store.gaps(*EVER) if gap.table == "samples"]
    assert (gap.from_ns, gap.to_ns, gap.lost) == (at(0), at(9) + 1, 20)
    assert store.info().lost_samples == 20


@pytest.mark.parametrize("table", ["stacks", "frames"])
def test_samples_whose_stacks_are_lost_say_so(write, table):
    directory = write(1)
    (segment,) = directory.glob("20*")
    (segment / f"{table}.parquet").unlink()
    store = Store.open(directory)
    window = store.samples(*EVER)
    assert set(window.samples.column("stack").to_pylist()) == {-1}
    assert (window.stacks.num_rows, window.frames.num_rows) == (0, 0)
    assert [gap.table for gap in store.gaps(*EVER)] == ["cores", table]


def test_damaged_files_beside_the_segments_are_gaps_of_the_recording(write):
    directory = write(1)
    (directory / "recording.json").write_text("x")
    (directory / "pins.json").write_text("x")
    info = Store.open(directory).info()
    assert (info.node, info.labels, info.pins) == ("node-a", {}, [])
    assert sorted(gap.cause for gap in info.gaps if gap.table == "recording") == [
        "pins.json fails its checksum",
        "recording.json fails its checksum",
    ]


def test_recording_may_be_opened_by_a_relative_path(write, monkeypatch):
    directory = write(1)
    monkeypatch.chdir(directory.parent)
    assert Store.open(Path("recording")).rows("cores", *EVER).num_rows == 20
