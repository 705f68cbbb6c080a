"""The functions of a neighbourhood are those that the whole table gives, address by address."""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.whole_symbol_table import WholeTable, functions_between

from necroscope.symbols.elf import ProgramHeader, Section, SectionHeader, Segments
from necroscope.symbols.function_index import (
    FileFunctions,
    FunctionIndex,
    index_debugdata,
    index_symtab,
)
from necroscope.symbols.image import BytesImage, FileImage
from necroscope.symbols.messages import unpack_block

NAMES = [b"", b"f", b"_f", b"__f", b"$x", b"g@@V1", b"long_name"]
STRINGS = b"\0".join(NAMES) + b"\0"
PLACES = [STRINGS.index(b"\0" + name + b"\0") + 1 if name else 0 for name in NAMES]
# Nothing, code, data: flag 4 says that instructions are in there.
SECTIONS = [
    SectionHeader(0, 0, 0, 0, 0, 0, 0),
    SectionHeader(0, 1, 4, 0x1000, 0, 0x800, 0),
    SectionHeader(0, 1, 0, 0x1800, 0, 0x800, 0),
]
BASE = 0x1000


@contextmanager
def file_of(content: bytes) -> Iterator[FileImage]:
    descriptor = os.memfd_create("strings")
    try:
        os.write(descriptor, content)
        yield FileImage(descriptor)
    finally:
        os.close(descriptor)


class FakeElf:
    sections = SECTIONS


class LargeElf(FakeElf):
    """Ten million symbols, and as much packed into a section."""

    def section_of_type(self, _type: int) -> Section:
        return Section(0, 240 << 20, 2)

    def section(self, _name: bytes, _image: BytesImage) -> Section:
        return Section(0, 60 << 20, 0)

    def linked(self, _section: Section) -> Section:
        return Section(0, 1 << 20, 0)


class NoMemory(BytesImage):
    def read(self, offset: int, size_bytes: int) -> bytes:
        raise MemoryError


@st.composite
def symbols(draw: st.DrawFn) -> bytes:
    """Functions, labels, ifuncs and objects, local and global, at few places so that they meet."""
    kinds = st.sampled_from([0, 1, 2, 2, 2, 10])
    drawn = draw(
        st.lists(
            st.tuples(
                st.sampled_from(PLACES),
                kinds,
                st.sampled_from([0, 1]),
                st.integers(0, 4),
                st.integers(0, 120),
                st.integers(0, 40),
            ),
            max_size=30,
        )
    )
    return b"".join(
        struct.pack(
            "<IBBHQQ",
            place,
            binding << 4 | kind,
            0,
            section,
            (BASE + 16 * start) if start else 0,
            8 * size,
        )
        for place, kind, binding, section, start, size in drawn
    )


@settings(max_examples=300, deadline=None)
@given(symbols(), st.integers(0, 0x900), st.integers(1, 0x900), st.booleans())
def test_functions_of_a_range_are_those_of_the_whole_table(
    content: bytes, start: int, length: int, whole: bool
) -> None:
    strings = Section(0, len(STRINGS), 0)
    index = FunctionIndex(content, SECTIONS, strings, STRINGS if whole else None)
    table = WholeTable(content, SECTIONS, STRINGS)
    low, high = BASE + start, BASE + start + length
    with file_of(STRINGS) as image:
        found = functions_between(index, low, high, image)
    assert found[0][0] == low
    assert all(one < other for (one, _), (other, _) in pairwise(found))
    addresses = range(low, high, 4)
    expected = [table.find(address) for address in addresses]
    assert [
        next(name for at, name in reversed(found) if at <= address) for address in addresses
    ] == expected


def functions_of(*symbols: tuple[int, int, bytes]) -> list[tuple[int, bytes | None]]:
    """Of global functions by start, size and name in the section with code, which ends at
    0x1800.
    """
    content = b"".join(
        struct.pack("<IBBHQQ", PLACES[NAMES.index(name)], 1 << 4 | 2, 0, 1, start, size)
        for start, size, name in symbols
    )
    index = FunctionIndex(content, SECTIONS, Section(0, len(STRINGS), 0), STRINGS)
    return functions_between(index, 0x1000, 0x2000, BytesImage(b""))


def test_function_covers_its_size_and_no_more() -> None:
    assert functions_of((0x1010, 5, b"f"), (0x1100, 5, b"_f")) == [
        (0x1000, None),
        (0x1010, b"f"),
        (0x1015, None),
        (0x1100, b"_f"),
        (0x1105, None),
    ]


def test_function_without_a_size_reaches_to_the_next_one_or_to_the_end_of_its_section() -> None:
    assert functions_of((0x1000, 0, b"f"), (0x1100, 0, b"_f")) == [
        (0x1000, b"f"),
        (0x1100, b"_f"),
        (0x1800, None),
    ]


def test_inner_function_wins_and_the_outer_one_goes_on_after_it() -> None:
    assert functions_of((0x1000, 0x90, b"f"), (0x1020, 0x10, b"_f")) == [
        (0x1000, b"f"),
        (0x1020, b"_f"),
        (0x1030, b"f"),
        (0x1090, None),
    ]


def test_of_one_start_the_name_with_fewest_underscores_is_shown() -> None:
    assert functions_of((0x1000, 8, b"__f"), (0x1000, 8, b"f"), (0x1000, 8, b"_f")) == [
        (0x1000, b"f"),
        (0x1008, None),
    ]


def test_table_without_symbols_knows_nothing() -> None:
    assert functions_of() == [(0x1000, None)]


@pytest.mark.parametrize("gap_bytes", [0, 100, 5000])
def test_names_are_read_from_the_file_wherever_they_lie(gap_bytes: int) -> None:
    """Of a large string table a piece is held: names before it, behind it and across its end are
    read as well.
    """
    names = [b"name_%d_" % number + b"x" * (number * 97 % 900) for number in range(40)]
    strings = b"\0" + b"".join(name + b"\0" * (1 + gap_bytes) for name in names)
    order = Random(3).sample(range(40), 40)
    content = b"".join(
        struct.pack("<IBBHQQ", strings.index(names[number]), 2, 0, 1, 0x1000 + 16 * at, 16)
        for at, number in enumerate(order)
    )
    content += struct.pack("<IBBHQQ", 1 << 30, 2, 0, 1, 0x1600, 0x10)
    index = FunctionIndex(content, SECTIONS, Section(5, len(strings), 0))
    with file_of(b"front" + strings) as image:
        found = functions_between(index, 0x1000, 0x2000, image)
    assert found == [
        *((0x1000 + 16 * at, names[number]) for at, number in enumerate(order)),
        (0x1280, None),
    ]


def test_string_table_that_is_not_there_has_no_names() -> None:
    content = struct.pack("<IBBHQQ", PLACES[1], 2, 0, 1, 0x1000, 16)
    index = FunctionIndex(content, SECTIONS, Section(1 << 62, 1 << 62, 0))
    with file_of(STRINGS) as image:
        assert functions_between(index, 0x1000, 0x2000, image) == [(0x1000, None)]


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=400),
    st.binary(max_size=60),
    st.integers(0, 1 << 64),
    st.integers(0, 1 << 51),
)
def test_no_symbol_breaks_the_reader(symbols: bytes, strings: bytes, end: int, block: int) -> None:
    sections = [SectionHeader(0, 0, 4, 0, 0, end, 0)] * 3
    index = FunctionIndex(symbols, sections, Section(0, len(strings), 0), strings)
    spans = [ProgramHeader(1, 5, 0, end, 1 << 62), ProgramHeader(1, 5, 100, 7, 1 << 63)]
    functions = FileFunctions(Segments(spans), [index, index])
    for number in (0, block):
        starts = [start for start, _ in unpack_block(functions.block(number, BytesImage(b"")))]
        assert starts[0] == 0
        assert starts == sorted(set(starts))


def test_what_does_not_fit_into_memory_is_no_table() -> None:
    assert index_symtab(LargeElf(), NoMemory(b"")) is None  # type: ignore[arg-type]
    assert index_debugdata(LargeElf(), NoMemory(b"")) is None  # type: ignore[arg-type]
