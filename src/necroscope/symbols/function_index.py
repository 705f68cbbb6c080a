"""The functions of an ELF file for whoever asks about a few places of it: symbols in the order of their addresses, as they are.

Of thousands of symbols few are ever asked about. So they are put in order by loops in C, which needs neither numpy nor its 30 MB,
and what they mean (which of several is shown, where one without a size ends) is worked out for the neighbourhood that is asked.
`elf_symbols` gives the same answers for many places at once.
"""

import lzma
from array import array
from bisect import bisect_left, bisect_right
from itertools import compress, pairwise
from typing import Final, NamedTuple

from necroscope.symbols.elf import Elf, Section, SectionHeader
from necroscope.symbols.image import BytesImage, Image, ImageError, PartImage, read_name

# Symbol and string tables together; librustc_driver, the biggest tried, has 23 MiB.
SYMBOLS_LIMIT_BYTES: Final = 256 << 20
# String tables of other files than the one asked about are kept in memory.
_STRINGS_LIMIT_BYTES: Final = 64 << 20
# To read so much of a string table takes as long as to read the names of a neighbourhood one by one.
_WHOLE_BYTES: Final = 32 << 10
_DEBUGDATA_LIMIT_BYTES: Final = 64 << 20
# xz -9 needs 65 MiB to unpack.
_XZ_MEMORY_LIMIT_BYTES: Final = 96 << 20

_SYMBOL_BYTES: Final = 24
_INFO_OFFSET: Final = 4
_SHT_SYMTAB: Final = 2
_SHT_DYNSYM: Final = 11
_SHF_EXECINSTR: Final = 4
_STT_NOTYPE: Final = 0
_STT_FUNC: Final = 2
_STT_GNU_IFUNC: Final = 10
# By the info byte of a symbol, whose lower half is its type.
_MAY_BE_CODE: Final = bytes(info & 15 in (_STT_NOTYPE, _STT_FUNC, _STT_GNU_IFUNC) for info in range(256))
_ADDRESS_END: Final = 1 << 64
# A function may lie inside another's range (asm entry points): so many earlier starts are asked whether they reach an address.
_LOOK_BACK: Final = 8
# Some of those are not shown.
_STARTS_BEFORE: Final = 2 * _LOOK_BACK
_BEHIND: Final = 3


class _Function(NamedTuple):
    start: int
    end: int
    name: bytes


class FunctionIndex:
    """The functions of one symbol section. Names are read from the file that is asked about, or from `names` if that is given."""

    def __init__(self, symbols: bytes, sections: list[SectionHeader], strings: Section, names: Image | None = None) -> None:
        words = array("Q", symbols)
        # Elf64_Sym: name (32 bits), info (8), other (8), section (16); address; size.
        heads, addresses, sizes = words[0::3], words[1::3], words[2::3]
        may_be_code = compress(range(len(heads)), symbols[_INFO_OFFSET::_SYMBOL_BYTES].translate(_MAY_BE_CODE))
        order = sorted(filter(addresses.__getitem__, may_be_code), key=addresses.__getitem__)
        self._heads = array("Q", map(heads.__getitem__, order))
        self._starts = array("Q", map(addresses.__getitem__, order))
        self._sizes = array("Q", map(sizes.__getitem__, order))
        self._section_ends = [section.address + section.size for section in sections]
        self._has_code = [bool(section.flags & _SHF_EXECINSTR) for section in sections]
        self._strings = strings
        self._names = names

    @property
    def size_bytes(self) -> int:
        return _SYMBOL_BYTES * len(self._starts) + (self._names.size_bytes if self._names else 0)

    def functions(self, low: int, high: int, image: Image) -> list[tuple[int, bytes | None]]:
        """Where from `low` to before `high` which function begins, None where none is; the first begins at `low`."""
        known = self._near(low, high, image)
        starts = [function.start for function in known]
        edges = {edge for function in known for edge in (function.start, function.end) if low < edge < high}
        found: list[tuple[int, bytes | None]] = []
        for edge in (low, *sorted(edges)):
            after = bisect_right(starts, edge)
            around = known[max(after - _LOOK_BACK, 0) : after][::-1]
            name = next((function.name for function in around if edge < function.end), None)
            if not found or found[-1][1] != name:
                found.append((edge, name))
        return found

    def _near(self, low: int, high: int, image: Image) -> list[_Function]:
        """What may reach into the range: of symbols with one start the best, labels only where no function is."""
        names = self._string_table(image)
        best: dict[int, tuple[int, int, bytes]] = {}  # by start: rank, place, name
        covered_to = 0
        last = min(bisect_left(self._starts, high) + _BEHIND, len(self._starts))
        for at in range(self._first_before(low), last):
            head, start, size = self._heads[at], self._starts[at], self._sizes[at]
            section, is_label = head >> 48, head >> 32 & 15 == _STT_NOTYPE
            if not section:
                continue
            name = self._name(head & 0xFFFF_FFFF, names)
            # aarch64 mapping symbols ($x, $d) are no functions, and what has no name cannot be shown.
            if not name or name.startswith(b"$") or (is_label and (start < covered_to or not self._is_in_code(section))):
                continue
            if not is_label:
                covered_to = start + max(size, 1)
            rank = 32 * is_label + 16 * (not size) + 4 * (not head >> 36 & 15) + name.startswith(b"_") + name.startswith(b"__")
            if start not in best or rank < best[start][0]:
                best[start] = (rank, at, name)
        return self._bounded(best)

    def _first_before(self, low: int) -> int:
        """Place of the symbol from which on those lie that may reach an address."""
        first = bisect_left(self._starts, low)
        for _ in range(_STARTS_BEFORE):
            if first:
                first = bisect_left(self._starts, self._starts[first - 1], hi=first)
        return first

    def _bounded(self, best: dict[int, tuple[int, int, bytes]]) -> list[_Function]:
        """With their ends: one without a size reaches to the next, but not past its section."""
        found = []
        for start, next_start in pairwise((*best, _ADDRESS_END)):
            _, at, name = best[start]
            end = start + self._sizes[at]
            if end == start:
                section = self._heads[at] >> 48
                end = min(next_start, self._section_ends[section] if section < len(self._section_ends) else _ADDRESS_END)
            found.append(_Function(start, end, name))
        return found

    def _is_in_code(self, section: int) -> bool:
        return section < len(self._has_code) and self._has_code[section]

    def _string_table(self, image: Image) -> Image:
        """The names, in memory if they are few; places in it are as in the symbols."""
        names, strings = self._names or image, self._strings
        if self._names is None and strings.size_bytes <= _WHOLE_BYTES:
            return BytesImage(image.read(strings.offset, strings.size_bytes))
        return names if self._names is not None else PartImage(names, strings.offset, strings.size_bytes)

    def _name(self, place: int, names: Image) -> bytes | None:
        try:
            # `memcpy@@GLIBC_2.14`: the version is the linker's business.
            return read_name(names, place).partition(b"@")[0]
        except ImageError:
            return None


def unpack_debugdata(elf: Elf, image: Image) -> bytes | None:
    """The ELF file in `.gnu_debugdata`."""
    section = elf.section(b".gnu_debugdata")
    if section is None or section.size_bytes > _DEBUGDATA_LIMIT_BYTES:
        return None
    try:
        packed = image.read(section.offset, section.size_bytes)
        decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_LIMIT_BYTES)
        return decompressor.decompress(packed, _DEBUGDATA_LIMIT_BYTES)
    except (lzma.LZMAError, MemoryError):
        return None


def index_symtab(elf: Elf, image: Image) -> FunctionIndex | None:
    return _index(elf, image, _SHT_SYMTAB)


def index_dynsym(elf: Elf, image: Image) -> FunctionIndex | None:
    return _index(elf, image, _SHT_DYNSYM)


def index_debugdata(elf: Elf, image: Image) -> FunctionIndex | None:
    """Functions that `.dynsym` does not have, in an ELF file packed into a section of its own ("mini debuginfo")."""
    content = unpack_debugdata(elf, image)
    return None if content is None else index_symtab_with_names(BytesImage(content))


def index_symtab_with_names(image: Image) -> FunctionIndex | None:
    """`.symtab` of another file than the one asked about, its string table kept in memory."""
    return _index(Elf(image), image, _SHT_SYMTAB, keeps_names=True)


def _index(elf: Elf, image: Image, section_type: int, *, keeps_names: bool = False) -> FunctionIndex | None:
    section = elf.section_of_type(section_type)
    strings = elf.linked(section) if section else None
    if section is None or strings is None or section.size_bytes + strings.size_bytes > SYMBOLS_LIMIT_BYTES:
        return None
    if section.size_bytes < _SYMBOL_BYTES or (keeps_names and strings.size_bytes > _STRINGS_LIMIT_BYTES):
        return None
    try:
        symbols = image.read(section.offset, section.size_bytes // _SYMBOL_BYTES * _SYMBOL_BYTES)
        names = BytesImage(image.read(strings.offset, strings.size_bytes)) if keeps_names else None
        return FunctionIndex(symbols, elf.sections, strings, names)
    except MemoryError:
        # More than the lookup process may hold. As good as none: whoever asks remembers that, and does not try again.
        return None
