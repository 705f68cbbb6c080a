"""Whatever rows go into a frame come out of it, by the pure decoder and by Arrow alike."""

import struct
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.decoded_block import decode_block

from necroscope.errors import CorruptData
from necroscope.model.tables import TABLES, Column, Table, Type
from necroscope.segment.arrow import batch_of, schema_of
from necroscope.segment.block import (
    HEADER_BYTES,
    MAGIC,
    Block,
    encode_block,
    encode_note,
    is_intact,
    parse_header,
)

HOSTILE = st.sampled_from(
    [
        "",
        "\0",
        "\x1b[2J",
        "é" * 200,
        "\U0001f480",
        "a" * 5000,
        MAGIC.decode("latin-1"),
        "\u202e",
        "\n",
        "'",
    ]
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | HOSTILE
VALUES = {
    Type.BOOL: st.booleans(),
    Type.INT16: st.integers(-(1 << 15), (1 << 15) - 1),
    Type.INT32: st.integers(-(1 << 31), (1 << 31) - 1),
    Type.INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    Type.UTF8: TEXT,
    Type.CATEGORY: TEXT,
    Type.INT32_LIST: st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=5),
}


def rows_of(table: Table) -> st.SearchStrategy:
    def value(column: Column) -> st.SearchStrategy:
        return st.none() | VALUES[column.type] if column.nullable else VALUES[column.type]

    return st.lists(st.tuples(*(value(column) for column in table.columns)), max_size=6)


def read(data: bytes) -> Block:
    header = parse_header(data)
    assert header is not None
    assert header.block_bytes == len(data)
    assert is_intact(data[:HEADER_BYTES], data[HEADER_BYTES:])
    return Block(header, 0, data[HEADER_BYTES:])


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_rows_come_back_as_they_went_in(table, data):
    rows = data.draw(rows_of(table))
    frame = read(encode_block(table, rows))
    assert decode_block(table, frame) == rows
    batch = batch_of(table, frame)
    assert batch.schema == schema_of(table)
    assert [tuple(row.values()) for row in batch.to_pylist()] == rows


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_values_of_any_kind_never_raise(table, data):
    anything = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.binary(max_size=3)
        | st.lists(st.integers())
    )
    rows = data.draw(st.lists(st.tuples(*(anything for _ in table.columns)), max_size=4))
    frame = read(encode_block(table, rows))
    assert len(decode_block(table, frame)) == len(rows) == batch_of(table, frame).num_rows


def test_many_rows_are_deflated_and_tell_their_time():
    rows = [(1_000 + i, i % 4, 1, 1, "comm", None, i, 1) for i in range(1_000)]
    frame = read(encode_block(TABLES["samples"], rows[::-1]))
    assert frame.header.is_deflated
    assert len(frame.payload) < 20 * len(rows)
    assert (frame.header.name, frame.header.rows, frame.header.from_ns, frame.header.to_ns) == (
        "samples",
        1_000,
        1_000,
        1_999,
    )


def test_a_gap_reaches_to_its_end():
    frame = read(
        encode_block(
            TABLES["gaps"],
            [(5, 900, "*", "stopped", None, None), (7, 8, "*", "stopped", None, None)],
        )
    )
    assert (frame.header.from_ns, frame.header.to_ns) == (5, 900)


def test_tables_without_time_tell_none():
    frame = read(encode_block(TABLES["stacks"], [(3, -1, 9)]))
    assert (frame.header.from_ns, frame.header.to_ns) == (0, 0)


def test_every_flipped_bit_is_noticed():
    data = encode_block(TABLES["cores"], [(1, 0, *range(10))])
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        head = bytes(damaged[:HEADER_BYTES])
        assert parse_header(head) is None or not is_intact(head, bytes(damaged[HEADER_BYTES:]))


def test_note_comes_back():
    assert read(encode_note("segment", {"node": "ü", "cpus": 2})).note() == {"node": "ü", "cpus": 2}


def lying(table: Table, rows: list, raw: bytes) -> Block:
    """A frame with a right checksum and a payload that somebody made up."""
    header = read(encode_block(table, rows)).header
    return Block(
        type(header)(header.name, 0, len(rows), 0, 0, 1, False, len(raw), len(raw)), 0, raw
    )


def test_content_that_contradicts_itself_is_corrupt_data():
    table, rows = TABLES["samples"], [(1, 0, 1, 1, "abc", "/", 0, 1)]
    frame = read(encode_block(table, rows))
    raw = frame.raw()
    lies = [raw[:50], b"", struct.pack("<I", 1 << 31) + raw[4:]]
    # The dictionary index of `comm` is the twelfth buffer; point it outside of the dictionary.
    index_at = raw.index(b"abc") - 16
    lies.append(raw[:index_at] + struct.pack("<i", 5) + raw[index_at + 4 :])
    for lie in lies:
        with pytest.raises(CorruptData):
            batch_of(table, lying(table, rows, lie))


def test_payload_that_inflates_to_more_than_it_says_is_corrupt_data():
    header = read(encode_block(TABLES["cores"], [])).header
    bomb = zlib.compress(bytes(1_000_000))
    frame = Block(type(header)("cores", 0, 1, 0, 0, 1, True, len(bomb), 100), 0, bomb)
    with pytest.raises(CorruptData, match="instead of 100"):
        frame.raw()
    with pytest.raises(CorruptData, match="inflated"):
        Block(frame.header, 0, b"no zlib").raw()
