"""The files of a lake's tables: named by their writer and their rows, each row once, sorted by node
and time.
"""

import functools
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from necroscope.errors import CorruptData, UsageError
from necroscope.fleet.lake import Lake, day_of
from necroscope.fleet.lake_tables import DAY_NS, LAKE_TABLES, RECEIPT_COLUMNS
from necroscope.fleet.protocol import NAME

_FILE: Final = re.compile(
    r"tables/(\w+)/date=(\d{4}-\d\d-\d\d)/cluster=([^/]+)/(\d+)-(\w+)-(\d+)\.parquet"
)
_FILES_AT_ONCE: Final = 4
_TEXT: Final = pa.string()
_TEXT_IN_MEMORY: Final = pa.dictionary(pa.int32(), _TEXT)


class DamagedFile(CorruptData):
    """A file of the lake whose bytes are not those that were written."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} is damaged: {reason[:200]}", "restore it from a copy, or remove it"
        )
        self.path = path


@dataclass(frozen=True, slots=True)
class TableFile:
    """What the path of a file says of it, without opening it."""

    table: str
    day: date
    cluster: str
    written_ns: int
    writer: str
    rows: int

    @property
    def path(self) -> str:
        place = f"tables/{self.table}/date={self.day}/cluster={self.cluster}"
        return f"{place}/{self.written_ns:020d}-{self.writer}-{self.rows}.parquet"

    @classmethod
    def of(cls, path: str) -> "TableFile | None":
        """None for a file that none of our writers named: it is read, and left as it is."""
        match = _FILE.fullmatch(path)
        if match is None:
            return None
        table, day, cluster, written_ns, writer, rows = match.groups()
        return cls(table, date.fromisoformat(day), cluster, int(written_ns), writer, int(rows))


def write_rows(lake: Lake, table: str, rows: pa.Table, writer: str, now_ns: int) -> list[str]:
    """Add rows of any days and clusters; durable when it returns. `writer` is a word of its own for
    each process that writes.
    """
    rows = rows.cast(LAKE_TABLES[table])
    paths = []
    for cluster in pc.unique(rows["cluster"]).to_pylist():
        if not NAME.fullmatch(cluster):
            raise UsageError(
                f"{cluster!r} is not a valid name of a cluster", "letters, digits, '.', '_' and '-'"
            )
        of_cluster = rows.filter(pc.equal(rows["cluster"], cluster))
        for day, of_day in by_day(of_cluster):
            paths.append(write_file(lake, table, day, cluster, of_day, writer, now_ns))
    return paths


def by_day(rows: pa.Table) -> Iterable[tuple[date, pa.Table]]:
    span = pc.min_max(rows["time"]).as_py()
    if span["min"] // DAY_NS == span["max"] // DAY_NS:
        return [(day_of(span["min"]), rows)]
    days = pc.divide(rows["time"], DAY_NS)
    return [
        (day_of(day * DAY_NS), rows.filter(pc.equal(days, day)))
        for day in pc.unique(days).to_pylist()
    ]


def write_file(
    lake: Lake, table: str, day: date, cluster: str, rows: pa.Table, writer: str, now_ns: int
) -> str:
    """One file of one day and cluster."""
    rows = distinct(table, rows)
    if table == "facts":
        rows = without_repetitions(rows)
    rows = sorted_by(rows, "node", "time")
    out = io.BytesIO()
    # Without our schema in it, texts come back as texts, whichever form they had in memory.
    pq.write_table(rows, out, compression="zstd", write_page_checksum=True, store_schema=False)
    path = TableFile(table, day, cluster, now_ns, writer, rows.num_rows).path
    lake.put(path, out.getvalue())
    return path


class FilesRead(NamedTuple):
    """`paths` are those whose rows these are; `large` are more than half of what was asked for,
    each.
    """

    rows: pa.Table
    paths: list[str]
    large: list[str]


def read_files(lake: Lake, table: str, paths: list[str], most_bytes: int) -> FilesRead:
    """Rows of as many files, the first ones, as are `most_bytes` together; DamagedFile for the
    first that is.

    Texts repeat from minute to minute and from file to file: one dictionary of them all is a tenth
    in memory. It is made a few files at a time, for to make it costs time, and to hold those of all
    files costs memory.
    """
    schema = _in_memory(LAKE_TABLES[table])
    texts = [field.name for field in LAKE_TABLES[table] if field.type == _TEXT]
    taken: list[str] = []
    large: list[str] = []
    size_bytes = 0
    parts = [schema.empty_table()]
    for path in paths:
        part = _as(_read(lake, path, texts), schema)
        own_bytes = plain_bytes(part)
        size_bytes += own_bytes
        if own_bytes > most_bytes // 2:
            large.append(path)
        if size_bytes > most_bytes:
            break
        taken.append(path)
        parts.append(part)
        if len(parts) > _FILES_AT_ONCE:
            parts = [_join(parts)]
    return FilesRead(_join(parts), taken, large)


def _join(parts: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(parts).unify_dictionaries()


def plain_bytes(rows: pa.Table) -> int:
    """With every text written out, as readers have them."""
    return sum(
        sum(map(_text_bytes, column.chunks))
        if pa.types.is_dictionary(column.type)
        else column.nbytes
        for column in rows.columns
    )


def _text_bytes(texts: pa.DictionaryArray) -> int:
    return pc.sum(pc.binary_length(texts.dictionary).take(texts.indices)).as_py() or 0


def _read(lake: Lake, path: str, texts: list[str]) -> pa.Table:
    data = pa.BufferReader(lake.read(path))
    try:
        return pq.read_table(data, read_dictionary=texts, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise DamagedFile(path, str(error)) from None


def _in_memory(schema: pa.Schema) -> pa.Schema:
    return pa.schema(
        [field.with_type(_TEXT_IN_MEMORY) if field.type == _TEXT else field for field in schema]
    )


def _as(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def sorted_by(rows: pa.Table, *names: str) -> pa.Table:
    """pyarrow sorts no dictionaries: the columns to sort by are texts for the time being."""
    keys = {
        name: rows[name].cast(_TEXT) if pa.types.is_dictionary(rows[name].type) else rows[name]
        for name in names
    }
    return rows.take(
        pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in names])
    )


def distinct(table: str, rows: pa.Table) -> pa.Table:
    """Each row once, as `ask` reads them."""
    late = RECEIPT_COLUMNS.get(table, ())
    keys = [name for name in rows.column_names if name not in late]
    grouped = rows.group_by(keys, use_threads=False).aggregate([(name, "first") for name in late])
    found = {name: grouped[f"{name}_first" if name in late else name] for name in rows.column_names}
    return pa.Table.from_arrays(list(found.values()), schema=rows.schema)


def without_repetitions(facts: pa.Table) -> pa.Table:
    """Facts are changes: of a run of equal values the first and the last stay (the last, for rows
    of other files in between).
    """
    facts = sorted_by(facts, "node", "kind", "name", "time")
    if len(facts) < 3:
        return facts
    is_same = functools.reduce(
        pc.and_, [_equal_to_next(facts[name]) for name in ("node", "kind", "name", "value")]
    )
    is_inner = pc.and_(is_same[:-1], is_same[1:])
    keep = pa.concat_arrays([pa.array([True]), pc.invert(is_inner), pa.array([True])])
    return facts.filter(keep)


def _equal_to_next(column: pa.ChunkedArray) -> pa.Array:
    """For each row but the last; null equals null."""
    values = column.combine_chunks()
    codes = (
        values.indices
        if pa.types.is_dictionary(values.type)
        else values.dictionary_encode().indices
    )
    codes = pc.fill_null(codes, -1)
    return pc.equal(codes[:-1], codes[1:])
