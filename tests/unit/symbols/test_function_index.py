"""The functions of a neighbourhood are those that the whole table gives, address by address."""

import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from necroscope.symbols.elf import Section, SectionHeader
from necroscope.symbols.elf_symbols import _SYMBOL, FunctionTable, _build
from necroscope.symbols.function_index import FunctionIndex, index_debugdata, index_symtab
from necroscope.symbols.image import BytesImage

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


class FakeElf:
    sections = SECTIONS


class LargeElf(FakeElf):
    """Ten million symbols, and as much packed into a section."""

    def section_of_type(self, _type: int) -> Section:
        return Section(0, 240 << 20, 2)

    def section(self, _name: bytes) -> Section:
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
        struct.pack("<IBBHQQ", place, binding << 4 | kind, 0, section, (BASE + 16 * start) if start else 0, 8 * size)
        for place, kind, binding, section, start, size in drawn
    )


@settings(max_examples=300, deadline=None)
@given(symbols(), st.integers(0, 0x900), st.integers(1, 0x900), st.booleans())
def test_functions_of_a_range_are_those_of_the_whole_table(content: bytes, start: int, length: int, whole: bool) -> None:
    strings = Section(0, len(STRINGS), 0)
    names = BytesImage(STRINGS)
    index = FunctionIndex(content, SECTIONS, strings, names if whole else None)
    table = FunctionTable(_build(FakeElf(), names, np.frombuffer(content, _SYMBOL), strings), strings, names)  # type: ignore[arg-type]
    low, high = BASE + start, BASE + start + length
    found = index.functions(low, high, names)
    assert found[0][0] == low
    assert all(one < other for (one, _), (other, _) in pairwise(found))
    addresses = range(low, high, 4)
    expected = table.find(list(addresses), names)
    assert [next(name for at, name in reversed(found) if at <= address) for address in addresses] == expected


@pytest.mark.parametrize("strings_limit", [0, 1 << 20])
def test_names_are_read_one_by_one_from_a_large_string_table(strings_limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("necroscope.symbols.function_index._WHOLE_BYTES", strings_limit)
    image = BytesImage(b"front" + STRINGS)
    content = struct.pack("<IBBHQQ", PLACES[6], 2, 0, 1, 0x1010, 0x10) + struct.pack("<IBBHQQ", 1 << 30, 2, 0, 1, 0x1040, 0x10)
    index = FunctionIndex(content, SECTIONS, Section(5, len(STRINGS), 0))
    assert index.functions(0x1000, 0x2000, image) == [(0x1000, None), (0x1010, b"long_name"), (0x1020, None)]


def test_what_does_not_fit_into_memory_is_no_table() -> None:
    assert index_symtab(LargeElf(), NoMemory(b"")) is None  # type: ignore[arg-type]
    assert index_debugdata(LargeElf(), NoMemory(b"")) is None  # type: ignore[arg-type]
