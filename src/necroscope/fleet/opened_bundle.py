"""A bundle that came from elsewhere, opened as a recording: what it claims is looked at before
anything in it is read.
"""

import contextlib
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from necroscope.errors import CorruptData
from necroscope.fleet.bundle import unpack
from necroscope.fleet.table_files import plain_bytes
from necroscope.model.units import format_duration
from necroscope.store.excerpt import LONGEST_NS
from necroscope.store.query import Store

# Of all tables: an hour of 384 cores, each second, is a third of it.
_MOST_VALUES: Final = 1 << 26
_MOST_BYTES: Final = 512 << 20
_MOST_TEXT_BYTES: Final = 1 << 30
_LONGEST_SPAN_NS: Final = 24 * LONGEST_NS
_TEXT: Final = "BYTE_ARRAY"
# Names of columns need not be UTF-8, and then Arrow's error is Python's own.
_NOT_READABLE: Final = (OSError, ValueError, pa.ArrowException)


def open_bundle(content: bytes, directory: Path) -> Store:
    """The recording in a bundle, unpacked into a new directory; CorruptData if it is none, or
    claims more than one can hold.
    """
    unpack(content, directory)
    _check_tables(directory)
    store = Store.open(directory)
    info = store.info()
    if (
        info.from_ns is not None
        and info.to_ns is not None
        and info.to_ns - info.from_ns > _LONGEST_SPAN_NS
    ):
        raise CorruptData(
            f"the bundle says that it is of {format_duration(info.to_ns - info.from_ns)}"
        )
    return store


def _check_tables(directory: Path) -> None:
    """By their footers first: some bytes of a file can stand for any number of equal rows, and a
    row for any number of values.
    """
    footers = {
        path: footer
        for path in directory.glob("*/*.parquet")
        if (footer := _footer(path)) is not None
    }
    groups = [
        footer.row_group(number)
        for footer in footers.values()
        for number in range(footer.num_row_groups)
    ]
    values, size_bytes = (
        sum(map(_values, groups)),
        sum(abs(group.total_byte_size) for group in groups),
    )
    if values > _MOST_VALUES or size_bytes > _MOST_BYTES:
        raise CorruptData(
            f"the bundle says that it holds {values:,} values of {size_bytes:,} bytes"
        )
    text_bytes = 0
    for path, footer in footers.items():
        columns = [footer.schema.column(number) for number in range(len(footer.schema))]
        texts = [column for column in columns if column.physical_type == _TEXT]
        if any(column.max_repetition_level for column in texts):
            raise CorruptData(
                f"the bundle's {path.name} holds lists of texts, which no table of a recording has"
            )
        text_bytes += _text_bytes(path, [column.name for column in texts])
        if text_bytes > _MOST_TEXT_BYTES:
            raise CorruptData(f"the bundle holds texts of {text_bytes:,} bytes")


def _footer(path: Path) -> Any:
    """None if it cannot be read: what is damaged is reported by who reads it."""
    with contextlib.suppress(*_NOT_READABLE):
        return pq.read_metadata(path)
    return None


def _values(group: Any) -> int:
    columns = [group.column(number) for number in range(group.num_columns)]
    return sum(max(abs(group.num_rows), abs(column.num_values)) for column in columns)


def _text_bytes(path: Path, names: list[str]) -> int:
    """With each text written out as often as it is there."""
    try:
        return (
            plain_bytes(pq.read_table(path, columns=names, read_dictionary=names)) if names else 0
        )
    except _NOT_READABLE as error:
        raise CorruptData(f"the bundle's {path.name} cannot be read: {error}") from None
