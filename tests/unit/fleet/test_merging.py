"""Small files become one: when, which, and what a kill or a second collector leaves."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from tests.fleet_batches import NS, START_NS, sequences_in

from necroscope.errors import CorruptData
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.fleet.merging import ABANDONED_NS, GRACE_NS, MOST_ROWS, TOGETHER, Merger, plan
from necroscope.fleet.table_files import TableFile, plain_bytes, read_files, write_rows

HOUR_NS = 3600 * NS
DAY_NS = 24 * HOUR_NS
TODAY = date(2025, 10, 9)
SMALL = [
    TableFile("events", TODAY, "eu-1", START_NS + number, "me", 100) for number in range(TOGETHER)
]


class Clock:
    def __init__(self) -> None:
        self.now_ns = START_NS

    def __call__(self) -> int:
        self.now_ns += 1
        return self.now_ns


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"))


def write_events(lake: Lake, clock: Clock, writer: str, numbers: range) -> None:
    """One file for each number."""
    for number in numbers:
        row = {
            "cluster": "eu-1",
            "node": "n1",
            "time": START_NS,
            "boot_id": "b",
            "source_sequence": number,
            "kind": "k",
        }
        write_rows(
            lake,
            "events",
            pa.Table.from_pylist([row], schema=LAKE_TABLES["events"]),
            writer,
            clock(),
        )


def test_sixteen_small_ones_are_merged_and_fifteen_wait() -> None:
    assert plan(SMALL, START_NS) == [SMALL]
    assert plan(SMALL[1:], START_NS) == []


def test_files_of_other_days_clusters_tables_and_sizes_do_not_count() -> None:
    for other in (
        replace(SMALL[0], cluster="us"),
        replace(SMALL[0], table="jobs"),
        replace(SMALL[0], rows=100_000),
    ):
        assert plan([*SMALL[1:], other], START_NS) == []


def test_a_row_is_written_again_once_for_each_factor_of_sixteen() -> None:
    files: list[TableFile] = []
    written = 0
    for number in range(1000):
        files.append(replace(SMALL[0], written_ns=START_NS + number))
        for group in plan(files, START_NS):
            merged = replace(
                group[0],
                written_ns=START_NS + 10**6 + number,
                rows=sum(file.rows for file in group),
            )
            files = [file for file in files if file not in group] + [merged]
            written += merged.rows
    assert written <= 100 * 1000 * 3
    assert len(files) < 4 * TOGETHER


def test_a_file_does_not_grow_without_end() -> None:
    large = [replace(file, rows=MOST_ROWS // 3) for file in SMALL]
    assert [len(group) for group in plan(large, START_NS)] == [3]
    assert plan([replace(file, rows=MOST_ROWS // 2) for file in SMALL], START_NS) == []
    assert [
        len(group)
        for group in plan([replace(file, table="incidents", rows=8000) for file in SMALL], START_NS)
    ] == [2]


def test_a_day_that_has_ended_becomes_one_file() -> None:
    few = [replace(SMALL[0], rows=10), replace(SMALL[1], rows=100_000)]
    assert plan(few, START_NS + DAY_NS) == []
    assert plan(few, START_NS + 2 * DAY_NS) == [few]
    assert plan(few[:1], START_NS + 2 * DAY_NS) == []


def test_merged_rows_are_there_once_and_the_small_files_go_after_a_while(
    lake: Lake, clock: Clock
) -> None:
    write_events(lake, clock, "me", range(TOGETHER))
    listed_before = lake.dataset("events")
    merger = Merger(lake, "me", clock)
    assert merger.merge() == TOGETHER
    assert listed_before.count_rows() == TOGETHER, (
        "a question that began before still finds its files"
    )
    assert merger.merge() == 0, "what is merged is not merged again"
    assert len(lake.list("tables")) == TOGETHER + 1
    clock.now_ns += GRACE_NS
    merger.merge()
    assert len(lake.list("tables")) == 1
    assert sequences_in(lake) == [("n1", number) for number in range(TOGETHER)]


def test_a_kill_before_the_small_files_go_repeats_nothing(lake: Lake, clock: Clock) -> None:
    write_events(lake, clock, "me", range(TOGETHER))
    Merger(lake, "me", clock).merge()
    assert len(lake.list("tables")) == TOGETHER + 1
    clock.now_ns += 3 * DAY_NS
    after = Merger(lake, "next", clock)
    after.merge()
    after.remove_retired(at_once=True)
    assert len(lake.list("tables")) == 1
    assert lake.dataset("events").count_rows() == TOGETHER
    assert sequences_in(lake) == [("n1", number) for number in range(TOGETHER)]


def test_another_collector_s_young_files_are_left_to_it(lake: Lake, clock: Clock) -> None:
    write_events(lake, clock, "other", range(TOGETHER))
    merger = Merger(lake, "me", clock)
    assert merger.merge() == 0
    clock.now_ns += ABANDONED_NS
    assert merger.merge() == TOGETHER


def test_files_that_another_merged_meanwhile_are_no_error(
    lake: Lake, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_events(lake, clock, "me", range(TOGETHER))
    listed = lake.table_files("events")
    lake.delete(listed[0])
    with monkeypatch.context() as stale:
        stale.setattr(
            Lake, "table_files", lambda _, table, *__: listed if table == "events" else []
        )
        assert Merger(lake, "me", clock).merge() == 0
    assert lake.list("tables") == listed[1:]


def test_a_damaged_file_is_reported_and_left_alone(lake: Lake, clock: Clock) -> None:
    write_events(lake, clock, "me", range(TOGETHER + 1))
    damaged = lake.list("tables")[3]
    lake.put(damaged, lake.read(damaged)[:-30])
    merger = Merger(lake, "me", clock)
    with pytest.raises(CorruptData, match=damaged):
        merger.merge()
    assert merger.merge() == TOGETHER
    assert damaged in lake.list("tables")


def test_most_rounds_look_at_the_last_days_only(lake: Lake, clock: Clock) -> None:
    write_events(lake, clock, "me", range(TOGETHER))
    clock.now_ns += 10 * DAY_NS
    merger = Merger(lake, "me", clock)
    assert merger.merge(is_all_days=False) == 0
    assert merger.merge(is_all_days=True) == TOGETHER


def test_files_are_merged_as_far_as_their_rows_fit_into_memory(
    lake: Lake, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_events(lake, clock, "me", range(TOGETHER))
    one = plain_bytes(read_files(lake, "events", lake.table_files("events")[:1], 1 << 20).rows)
    monkeypatch.setattr("necroscope.fleet.merging._MOST_BYTES", 5 * one)
    merger = Merger(lake, "me", clock)
    assert merger.merge() == 5
    assert sequences_in(lake) == [("n1", number) for number in range(TOGETHER)]


def test_a_file_that_is_full_with_few_rows_is_looked_at_once(
    lake: Lake, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_events(lake, clock, "me", range(TOGETHER))
    monkeypatch.setattr("necroscope.fleet.merging._MOST_BYTES", 1)
    merger = Merger(lake, "me", clock)
    assert merger.merge() == 0
    monkeypatch.delattr(Lake, "read")
    assert merger.merge() == 0
