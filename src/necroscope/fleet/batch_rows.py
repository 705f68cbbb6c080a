"""A batch's rows as the lake's tables have them: with cluster and node, texts cleaned, labels as
facts, the clock's offset.
"""

from typing import Any, Final

import pyarrow as pa

from necroscope.fleet.lake_tables import JSON_COLUMNS, LAKE_TABLES, TEXT_LIMITS
from necroscope.fleet.protocol import LABEL, Batch, Columns
from necroscope.model.names import NAME_LIMIT, clean
from necroscope.model.units import NS_PER_S

# A body may take some time to come; a clock that was set is off by more.
_LONGEST_WAY_NS: Final = 2 * NS_PER_S


def rows_of(
    batch: Batch,
    cluster: str,
    received_ns: int,
    sent_ns: int | None,
    clock: tuple[int, int] | None = None,
) -> dict[str, pa.Table]:
    """By table; those without rows are not there. `sent_ns` is better than the batch's own, which
    may have waited in a spool; `clock`, which the node measured, is better than both.
    """
    tables = dict(batch.tables)
    if batch.labels:
        tables["facts"] = _with_labels(tables.get("facts", {}), batch)
    plain_ns = received_ns - (batch.sent_ns if sent_ns is None else sent_ns)
    offset_ns, error_ns = _clock(plain_ns, None if sent_ns is None else clock)
    given = {
        "cluster": cluster,
        "node": batch.node,
        "clock_offset_ns": offset_ns,
        "clock_error_ns": error_ns,
    }
    return {
        name: _arrow(name, columns, given) for name, columns in tables.items() if columns["time"]
    }


def _clock(plain_ns: int, clock: tuple[int, int] | None) -> tuple[int, int | None]:
    """What was measured, unless a clock was set since: then this very batch is the better witness,
    although its way is part of what it says.
    """
    if clock is None or abs(plain_ns - clock[0]) > clock[1] + _LONGEST_WAY_NS:
        return plain_ns, None
    return clock


def _with_labels(facts: Columns, batch: Batch) -> Columns:
    """Labels hold for what the batch speaks of: a recording may be pushed long after it was
    made.
    """
    time_ns = min(batch.tables.get("pulses", {}).get("span_from", ()), default=batch.sent_ns)
    count = len(facts.get("time", ()))
    return {
        "time": [*facts.get("time", ()), *[time_ns] * len(batch.labels)],
        "kind": [*facts.get("kind", ()), *[LABEL] * len(batch.labels)],
        "name": [*facts.get("name", ()), *batch.labels],
        "value": [*facts.get("value", [None] * count), *batch.labels.values()],
    }


def _arrow(table: str, columns: Columns, given: dict[str, Any]) -> pa.Table:
    count = len(columns["time"])
    arrays = [_array(table, field, columns, given, count) for field in LAKE_TABLES[table]]
    return pa.Table.from_arrays(arrays, schema=LAKE_TABLES[table])


def _array(
    table: str, field: pa.Field, columns: Columns, given: dict[str, Any], count: int
) -> pa.Array:
    if field.name in given:
        return pa.repeat(pa.scalar(given[field.name], field.type), count)
    values = columns.get(field.name)
    if values is None:
        return pa.nulls(count, field.type)
    if field.type == pa.string() and field.name not in JSON_COLUMNS.get(table, ()):
        values = _clean_all(values, TEXT_LIMITS.get(field.name, NAME_LIMIT))
    return pa.array(values, field.type)


def _clean_all(texts: list[str | None], limit: int) -> list[str | None]:
    """Most columns are clean already, and looked at as a whole."""
    if (
        "".join(text for text in texts if text).isprintable()
        and max((len(text) for text in texts if text), default=0) <= limit
    ):
        return texts
    return [None if text is None else clean(text, limit) for text in texts]
