"""Files of tables: named so that they need not be opened, each row once."""

import io
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fleet_batches import NS, START_NS

from necroscope.errors import CorruptData, UsageError
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.fleet.table_files import (
    TableFile,
    distinct,
    read_files,
    without_repetitions,
    write_rows,
)

DAY_NS = 86_400 * NS


def facts(*rows: tuple[str, int, str | None]) -> pa.Table:
    """Of sysctl x: node, moment, value."""
    whole = [
        {"cluster": "c", "node": node, "time": time, "kind": "sysctl", "name": "x", "value": value}
        for node, time, value in rows
    ]
    return pa.Table.from_pylist(whole, schema=LAKE_TABLES["facts"])


def values_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return [(row["node"], row["time"], row["value"]) for row in table.to_pylist()]


def test_a_path_tells_all_there_is_to_know() -> None:
    file = TableFile("events", date(2026, 1, 2), "eu-1", 5, "abc", 7)
    assert (
        file.path == "tables/events/date=2026-01-02/cluster=eu-1/00000000000000000005-abc-7.parquet"
    )
    assert TableFile.of(file.path) == file
    assert TableFile.of("tables/events/date=2026-01-02/cluster=eu-1/by-hand.parquet") is None


def test_rows_go_to_the_files_of_their_days_and_clusters(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    rows = facts(("n1", START_NS, "a"), ("n1", START_NS + DAY_NS, "b"), ("n2", START_NS, "a"))
    paths = write_rows(lake, "facts", rows, "sweep", START_NS)
    files = [TableFile.of(path) for path in paths]
    assert sorted((file.day.day, file.rows) for file in files if file) == [(9, 2), (10, 1)]
    assert sorted(values_of(lake.dataset("facts").to_table())) == sorted(values_of(rows))


def test_facts_are_written_as_changes(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    write_rows(
        lake,
        "facts",
        facts(*(("n1", START_NS + second, "a") for second in range(5))),
        "w",
        START_NS,
    )
    assert values_of(lake.dataset("facts").to_table()) == [
        ("n1", START_NS, "a"),
        ("n1", START_NS + 4, "a"),
    ]


def test_a_cluster_that_would_steer_the_path_is_refused(tmp_path: Path) -> None:
    rows = facts(("n1", START_NS, "a"))
    rows = rows.set_column(0, LAKE_TABLES["facts"].field("cluster"), pa.array(["../x"]))
    with pytest.raises(UsageError):
        write_rows(Lake.open(str(tmp_path)), "facts", rows, "w", START_NS)


def test_texts_come_back_as_texts_after_a_merge(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    [path] = write_rows(
        lake, "facts", facts(("n1", START_NS, "a"), ("n2", START_NS, None)), "w", START_NS
    )
    merged = read_files(lake, "facts", [path, path], 1 << 20).rows
    [again] = write_rows(lake, "facts", merged, "w", START_NS + 1)
    assert values_of(lake.dataset_of("facts", [again]).to_table()) == [
        ("n1", START_NS, "a"),
        ("n2", START_NS, None),
    ]


def test_files_are_read_as_long_as_their_texts_fit(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    paths = [
        write_rows(
            lake,
            "facts",
            facts(*((f"n{row}", START_NS, "x" * length) for row in range(100))),
            "w",
            START_NS + number,
        )[0]
        for number, length in enumerate((100, 200, 2000))
    ]
    found = read_files(lake, "facts", paths, 200_000)
    assert (found.paths, found.large, found.rows.num_rows) == (paths[:2], paths[2:], 200)


def test_a_flipped_bit_in_a_page_is_noticed(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    [path] = write_rows(
        lake, "facts", facts(("n1", START_NS, "a"), ("n2", START_NS, None)), "w", START_NS
    )
    data = bytearray(lake.read(path))
    column = pq.read_metadata(io.BytesIO(bytes(data))).row_group(0).column(5)
    data[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 1
    lake.put(path, bytes(data))
    with pytest.raises(CorruptData, match=path):
        read_files(lake, "facts", [path], 1 << 20)


def test_rows_that_came_twice_are_there_once() -> None:
    rows = facts(("n1", 5, "a"), ("n1", 5, "a"), ("n1", 5, None), ("n1", 5, None), ("n2", 5, "a"))
    assert sorted(values_of(distinct("facts", rows)), key=str) == [
        ("n1", 5, "a"),
        ("n1", 5, None),
        ("n2", 5, "a"),
    ]


def test_a_pulse_that_came_twice_is_there_once_though_its_receipts_differ() -> None:
    row = {"cluster": "c", "node": "n", "time": 5, "span_from": 1, "span_to": 5}
    rows = pa.Table.from_pylist(
        [row | {"clock_offset_ns": 1}, row | {"clock_offset_ns": 2}], schema=LAKE_TABLES["pulses"]
    )
    assert [pulse["clock_offset_ns"] for pulse in distinct("pulses", rows).to_pylist()] == [1]


@pytest.mark.parametrize("as_read", [False, True])
def test_of_a_run_of_equal_facts_the_first_and_the_last_stay(as_read: bool) -> None:
    rows = facts(
        ("n", 3, "a"),
        ("n", 1, "a"),
        ("n", 2, "a"),
        ("n", 4, "b"),
        ("n", 5, None),
        ("n", 6, None),
        ("n", 7, None),
        ("m", 2, "a"),
    )
    if as_read:
        rows = rows.set_column(5, "value", rows["value"].dictionary_encode())
    assert values_of(without_repetitions(rows)) == [
        ("m", 2, "a"),
        ("n", 1, "a"),
        ("n", 3, "a"),
        ("n", 4, "b"),
        ("n", 5, None),
        ("n", 7, None),
    ]
