"""Our tables in Arrow's terms: the schema of a table, and a block of the journal as a record batch,
without a loop over rows.
"""

import struct
from typing import Final

import pyarrow as pa

from necroscope.errors import CorruptData
from necroscope.model.reading import ColumnBuffers, Gap, Rows
from necroscope.model.tables import Table, Type
from necroscope.segment.block import Block, payload_buffers
from necroscope.segment.columns import BUFFER_COUNT

_CATEGORY: Final = pa.dictionary(pa.int32(), pa.utf8())
_TYPES: Final = {
    Type.BOOL: pa.bool_(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.UTF8: pa.utf8(),
    Type.CATEGORY: _CATEGORY,
    Type.INT32_LIST: pa.list_(pa.field("element", pa.int32())),
}


# By identity: tables are constants, and to hash all columns of one takes longer than to read a
# small block of it.
_schemas: Final[dict[int, tuple[Table, pa.Schema]]] = {}
_empty_tables: Final[dict[int, tuple[Table, pa.Table]]] = {}


def schema_of(table: Table) -> pa.Schema:
    """Every field may be null: what was not a value is stored as null rather than as a made-up
    zero.
    """
    if id(table) not in _schemas:
        _schemas[id(table)] = (
            table,
            pa.schema([(column.name, _TYPES[column.type]) for column in table.columns]),
        )
    return _schemas[id(table)][1]


def empty(table: Table) -> pa.Table:
    if id(table) not in _empty_tables:
        _empty_tables[id(table)] = table, schema_of(table).empty_table()
    return _empty_tables[id(table)][1]


def batch_of(table: Table, block: Block) -> pa.RecordBatch:
    """The rows of a block; CorruptData if its content contradicts itself."""
    rows = block.header.rows
    try:
        buffers = iter([pa.py_buffer(buffer) for buffer in payload_buffers(table, block.raw())])
        arrays = [
            _array(c.type, rows, [next(buffers) for _ in range(BUFFER_COUNT[c.type])])
            for c in table.columns
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema_of(table))
        # Offsets and indices that lead outside their buffers would crash their reader.
        batch.validate(full=True)
    except (ValueError, struct.error, pa.ArrowException) as error:
        raise CorruptData(f"a block of {table.name} contradicts itself: {error}") from None
    return batch


def batch_from_columns(table: Table, columns: ColumnBuffers) -> pa.RecordBatch:
    """Buffers that this program has made: they are not checked."""
    buffers = iter([pa.py_buffer(buffer) for buffer in columns.buffers])
    arrays = [
        _array(c.type, columns.count, [next(buffers) for _ in range(BUFFER_COUNT[c.type])])
        for c in table.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(table))


def batch_from_rows(table: Table, rows: Rows) -> pa.RecordBatch:
    """Rows as a batch, value by value: for the few rows that a reader adds itself."""
    schema = schema_of(table)
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def gaps_of(rows: pa.Table | pa.RecordBatch) -> list[Gap]:
    """Rows of the table `gaps` as gaps."""
    return [
        Gap(row["table"], row["time"], row["end"], row["cause"], row["cpu"], row["lost"])
        for row in rows.to_pylist()
    ]


def _array(kind: Type, rows: int, buffers: list[pa.Buffer]) -> pa.Array:
    validity = buffers[0] if buffers[0].size else None
    if kind is Type.CATEGORY:
        entries = buffers[2].size // 4 - 1
        dictionary = pa.Array.from_buffers(pa.utf8(), max(entries, 0), [None, *buffers[2:]])
        dictionary.validate(full=True)
        return pa.DictionaryArray.from_buffers(_CATEGORY, rows, [validity, buffers[1]], dictionary)
    if kind is Type.INT32_LIST:
        items = pa.Array.from_buffers(pa.int32(), buffers[2].size // 4, [None, buffers[2]])
        return pa.Array.from_buffers(_TYPES[kind], rows, [validity, buffers[1]], children=[items])
    return pa.Array.from_buffers(_TYPES[kind], rows, [validity, *buffers[1:]])
