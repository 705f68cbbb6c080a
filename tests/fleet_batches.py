"""Batches as nodes send them, small enough to read in a test."""

from typing import Any

from necroscope.fleet.inbox import Receipt, inbox_path, pack
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.fleet.protocol import Batch, encode
from necroscope.fleet.table_files import distinct

NS = 1_000_000_000
START_NS = 1_760_000_000 * NS  # 2025-10-09T08:53:20Z
MINUTE_NS = 60 * NS
CLUSTER = "eu-1"


def made_batch(
    node: str = "gpu-17", number: int = 0, *, labels: dict[str, str] | None = None, **tables: Any
) -> Batch:
    """One event and one pulse of minute `number`, and whatever tables are given."""
    time_ns = START_NS + number * MINUTE_NS
    event = {
        "time": [time_ns],
        "boot_id": ["boot"],
        "source_sequence": [number],
        "kind": ["nic_reset"],
        "message": [f"reset {number}"],
    }
    pulse = {
        "time": [time_ns],
        "cpus": [96],
        "span_from": [time_ns],
        "span_to": [time_ns + MINUTE_NS],
    }
    return Batch(
        node,
        "boot",
        f"boot-{number}",
        time_ns,
        labels or {},
        {"events": event, "pulses": pulse, **tables},
    )


def put_in_inbox(lake: Lake, time_ns: int, collector: str, *batches: Batch) -> None:
    lake.put(
        inbox_path(time_ns, collector),
        pack(Receipt(CLUSTER, time_ns, None, encode(batch)) for batch in batches),
    )


def rows_in(lake: Lake, table: str = "events") -> list[dict[str, Any]]:
    """All rows of a table, each once, as readers see them."""
    rows = lake.dataset(table).to_table()
    assert rows.schema.equals(LAKE_TABLES[table])
    found: list[dict[str, Any]] = distinct(table, rows).to_pylist()
    return found


def sequences_in(lake: Lake) -> list[tuple[str, int]]:
    """Node and number of every event in the lake."""
    return sorted((row["node"], row["source_sequence"]) for row in rows_in(lake))
