"""A bundle that came from elsewhere, opened as a recording: what it claims is looked at before
anything in it is read.
"""

from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from necroscope.errors import CorruptData
from necroscope.fleet.bundle import unpack
from necroscope.fleet.table_files import plain_bytes
from necroscope.model.units import format_duration
from necroscope.segment.parquet_claims import Chunk, decoded_bytes, footer_of, read_footer
from necroscope.store.excerpt import LONGEST_NS
from necroscope.store.query import Store

# Of all tables: an hour of 384 cores, each second, is a third of it.
_MOST_VALUES: Final = 1 << 26
_MOST_BYTES: Final = 512 << 20
_MOST_TEXT_BYTES: Final = 1 << 30
_LONGEST_SPAN_NS: Final = 24 * LONGEST_NS
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
    """By their own claims first: some bytes of a file can stand for any number of equal rows, and a
    row for any number of values.
    """
    claims = {
        path: claim for path in directory.glob("*/*.parquet") if (claim := _claim(path)) is not None
    }
    values = sum(claim.values for claim in claims.values())
    size_bytes = sum(claim.size_bytes for claim in claims.values())
    if values > _MOST_VALUES or size_bytes > _MOST_BYTES:
        raise CorruptData(
            f"the bundle says that it holds {values:,} values of {size_bytes:,} bytes"
        )
    text_bytes = 0
    for path, claim in claims.items():
        if any(chunk.is_nested for chunk in claim.texts):
            raise CorruptData(
                f"the bundle's {path.name} holds lists of texts, which no table of a recording has"
            )
        text_bytes += _text_bytes(path, sorted({chunk.column for chunk in claim.texts}))
        if text_bytes > _MOST_TEXT_BYTES:
            raise CorruptData(f"the bundle holds texts of {text_bytes:,} bytes")


class _Claim(NamedTuple):
    values: int
    size_bytes: int
    texts: list[Chunk]


def _claim(path: Path) -> _Claim | None:
    """None if its footer contradicts itself: every reader finds the same, and notes a gap."""
    content = path.read_bytes()
    try:
        groups = read_footer(footer_of(content))
    except CorruptData:
        return None
    chunks = [chunk for group in groups for chunk in group.chunks]
    columns = {chunk.column for chunk in chunks}
    try:
        size_bytes = sum(decoded_bytes(content, group, columns, columns) for group in groups)
    except CorruptData as error:
        raise CorruptData(f"the bundle's {path.name} cannot be read: {error}") from None
    texts = [chunk for chunk in chunks if chunk.is_text]
    return _Claim(sum(chunk.values for chunk in chunks), size_bytes, texts)


def _text_bytes(path: Path, names: list[str]) -> int:
    """With each text written out as often as it is there."""
    if not names:
        return 0
    try:
        with pq.ParquetFile(path, read_dictionary=names) as file:
            return plain_bytes(file.read(columns=names))
    except _NOT_READABLE as error:
        raise CorruptData(f"the bundle's {path.name} cannot be read: {error}") from None
