"""All functions of an ELF symbol section, one address at a time: the index, which looks only near
by, must agree with it.
"""

import lzma
import struct
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Final, NamedTuple

from necroscope.symbols.elf import Elf, ProgramHeader, SectionHeader, Segments
from necroscope.symbols.function_index import FileFunctions, FunctionIndex
from necroscope.symbols.image import BytesImage, Image
from necroscope.symbols.messages import BLOCK_BITS, unpack_block

SYMTAB: Final = 2
DYNSYM: Final = 11
_LABEL: Final = 0
_FUNCTION_KINDS: Final = (2, 10)
_LOOK_BACK: Final = 8


class _Symbol(NamedTuple):
    start: int
    rank: int
    number: int
    is_label: bool
    size: int
    limit: int
    name: bytes


class WholeTable:
    def __init__(self, symbols: bytes, sections: Sequence[SectionHeader], strings: bytes) -> None:
        kept = sorted(
            symbol
            for number, fields in enumerate(struct.iter_unpack("<IBBHQQ", symbols))
            if (symbol := _symbol(number, fields, sections, strings)) is not None
        )
        in_order = sorted(
            (symbol for symbol in kept if not symbol.is_label),
            key=lambda symbol: (symbol.start, symbol.number),
        )
        shown: dict[int, _Symbol] = {}
        for symbol in kept:
            if not symbol.is_label or not _is_covered(symbol.start, in_order):
                shown.setdefault(symbol.start, symbol)
        self._shown = [shown[start] for start in sorted(shown)]

    def find(self, address: int) -> bytes | None:
        """The function that begins last before an address and reaches it."""
        after = bisect_right(self._shown, address, key=attrgetter("start"))
        for number in reversed(range(max(after - _LOOK_BACK, 0), after)):
            symbol = self._shown[number]
            following = self._shown[number + 1].start if number + 1 < len(self._shown) else 1 << 64
            if address < (
                symbol.start + symbol.size if symbol.size else min(following, symbol.limit)
            ):
                return symbol.name
        return None


def whole_table(elf: Elf, image: Image, section_type: int) -> WholeTable | None:
    section = elf.section_of_type(section_type)
    strings = elf.linked(section) if section is not None else None
    if section is None or strings is None:
        return None
    symbols = image.read(section.offset, section.size_bytes)
    return WholeTable(symbols, elf.sections, image.read(strings.offset, strings.size_bytes))


def whole_debugdata(elf: Elf, image: Image) -> WholeTable | None:
    """Of the ELF file in `.gnu_debugdata`."""
    section = elf.section(b".gnu_debugdata", image)
    if section is None:
        return None
    inner = BytesImage(lzma.decompress(image.read(section.offset, section.size_bytes)))
    return whole_table(Elf(inner), inner, SYMTAB)


def _symbol(
    number: int, fields: tuple[int, ...], sections: Sequence[SectionHeader], strings: bytes
) -> _Symbol | None:
    place, info, _, section, start, size = fields
    name = strings[place:].partition(b"\0")[0].partition(b"@")[0]
    is_label = info & 15 == _LABEL
    has_code = section < len(sections) and bool(sections[section].flags & 4)
    if not (section and start and name) or name.startswith(b"$"):
        return None
    if not (info & 15 in _FUNCTION_KINDS or (is_label and has_code)):
        return None
    underscores = name.startswith(b"_") + name.startswith(b"__")
    rank = 32 * is_label + 16 * (size == 0) + 4 * (info >> 4 == 0) + underscores
    limit = (
        sections[section].address + sections[section].size if section < len(sections) else 1 << 64
    )
    return _Symbol(start, rank, number, is_label, size, limit, name)


def _is_covered(address: int, functions: list[_Symbol]) -> bool:
    """Whether it lies in the function that starts next before it."""
    after = bisect_right(functions, address, key=attrgetter("start"))
    return after > 0 and address < functions[after - 1].start + max(functions[after - 1].size, 1)


def functions_between(
    index: FunctionIndex, low: int, high: int, image: Image
) -> list[tuple[int, bytes | None]]:
    """What an index says of addresses, as if the file lay at address 0: where which function
    begins, the first at `low`.
    """
    whole = FileFunctions(Segments([ProgramHeader(1, 5, 0, 0, 1 << 63)]), [index])
    found = [
        (max((block << BLOCK_BITS) + start, low), name or None)
        for block in range(low >> BLOCK_BITS, (high - 1 >> BLOCK_BITS) + 1)
        for start, name in unpack_block(whole.block(block, image))
        if (block << BLOCK_BITS) + start < high
    ]
    at_or_behind = [number for number, (at, _) in enumerate(found) if at == low]
    kept = found[at_or_behind[-1] :]
    return [kept[0], *(after for before, after in pairwise(kept) if after[1] != before[1])]


def addresses_of(segments: Segments, offsets: Sequence[int]) -> list[int]:
    """Virtual addresses of file offsets, 0 for what is not loaded: no function is there."""
    return [
        next(
            (
                offset - start + address
                for start, size, address in segments.ranges
                if 0 <= offset - start < size
            ),
            0,
        )
        for offset in offsets
    ]
