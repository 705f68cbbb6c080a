"""The functions of an ELF file: `.symtab`, else `.dynsym` and the xz-packed `.gnu_debugdata` that distributions add to it.

For many addresses at once, by numpy: for an import. The recorder's lookup process asks about a few (`function_index`).
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from necroscope.symbols.elf import Elf, Section
from necroscope.symbols.function_index import SYMBOLS_LIMIT_BYTES, unpack_debugdata
from necroscope.symbols.image import BytesImage, Image, ImageError, read_name
from necroscope.symbols.table import Addresses, SymbolTable

# String tables of other files than the one asked about are kept in memory.
_STRINGS_LIMIT_BYTES: Final = 64 << 20
_BLOCK_BYTES: Final = 1 << 20
_LAST: Final = (1 << 64) - 1
_WHOLE_BYTES: Final = 4 << 20
_NEAR_BYTES: Final = 64 << 10
# To read so much of a string table takes as long as to read one name from the file.
_BYTES_PER_NAME: Final = 8192

_SHT_SYMTAB: Final = 2
_SHT_DYNSYM: Final = 11
_SHF_EXECINSTR: Final = 4
_STT_NOTYPE: Final = 0
_STT_FUNC: Final = 2
_STT_GNU_IFUNC: Final = 10
_STB_LOCAL: Final = 0
_MAY_BE_CODE: Final = np.zeros(16, bool)
_MAY_BE_CODE[[_STT_NOTYPE, _STT_FUNC, _STT_GNU_IFUNC]] = True

_SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("address", "<u8"), ("size", "<u8")]
)


class FunctionTable:
    """The functions of one symbol section. Names are read from the file that is asked about, or from `names` if that is given."""

    def __init__(self, table: SymbolTable, strings: Section, names: Image | None = None) -> None:
        self._table = table
        self.strings = strings
        self._names = names

    def __len__(self) -> int:
        return len(self._table)

    @property
    def size_bytes(self) -> int:
        return self._table.size_bytes + (self._names.size_bytes if self._names else 0)

    def find(self, addresses: list[int], image: Image) -> list[bytes | None]:
        """Raw symbol names of virtual addresses."""
        return [None if place is None else self._name(place, image) for place in self._table.find(addresses)]

    def names(self, addresses: Addresses, image: Image) -> list[bytes | None]:
        """The same for many addresses at once: each name is fetched once."""
        places, which = np.unique(self._table.places(addresses), return_inverse=True)
        if self._names is None and min(len(places) * _BYTES_PER_NAME, _WHOLE_BYTES) >= self.strings.size_bytes:
            return self.with_names(image).names(addresses, image)
        names = [None if place < 0 else self._name(place, image) for place in places.tolist()]
        return [names[number] for number in which.tolist()]

    def with_names(self, image: Image) -> "FunctionTable":
        """The same with its string table in memory, for a file that is not at hand when names are asked for."""
        names = BytesImage(image.read(self.strings.offset, self.strings.size_bytes))
        return FunctionTable(self._table, self.strings._replace(offset=0), names)

    def _name(self, place: int, image: Image) -> bytes | None:
        if place >= self.strings.size_bytes:
            return None
        try:
            name = read_name(self._names or image, self.strings.offset + place)
        except ImageError:
            return None
        # `memcpy@@GLIBC_2.14`: the version is the linker's business.
        return name.partition(b"@")[0] or None


def read_symtab(elf: Elf, image: Image, near: Addresses | None = None) -> FunctionTable | None:
    """With `near` only what these addresses may need: for a large file that is asked about once that is most of the time."""
    return _read_table(elf, image, _SHT_SYMTAB, near)


def read_dynsym(elf: Elf, image: Image, near: Addresses | None = None) -> FunctionTable | None:
    return _read_table(elf, image, _SHT_DYNSYM, near)


def read_debugdata(elf: Elf, image: Image) -> FunctionTable | None:
    """Functions that `.dynsym` does not have, in an ELF file packed into a section of its own ("mini debuginfo")."""
    content = unpack_debugdata(elf, image)
    if content is None:
        return None
    return read_symtab_with_names(BytesImage(content))


def read_symtab_with_names(image: Image) -> FunctionTable | None:
    """`.symtab` of another file than the one asked about, its string table kept in memory."""
    found = _read_table(Elf(image), image, _SHT_SYMTAB)
    return found.with_names(image) if found is not None and found.strings.size_bytes <= _STRINGS_LIMIT_BYTES else None


def _read_table(elf: Elf, image: Image, section_type: int, near: Addresses | None = None) -> FunctionTable | None:
    section = elf.section_of_type(section_type)
    strings = elf.linked(section) if section else None
    if section is None or strings is None or section.size_bytes + strings.size_bytes > SYMBOLS_LIMIT_BYTES:
        return None
    count = section.size_bytes // _SYMBOL.itemsize
    symbols = np.frombuffer(image.read(section.offset, count * _SYMBOL.itemsize), _SYMBOL)
    if near is not None and len(near):
        symbols = symbols[_is_near(symbols, np.sort(near))]
    return FunctionTable(_build(elf, image, symbols, strings), strings) if count else None


def _is_near(symbols: npt.NDArray[np.void], wanted: Addresses) -> npt.NDArray[np.bool_]:
    """Symbols that reach one of the addresses by their size, or lie so near that they, or the end of one before, may matter."""
    starts = symbols["address"].copy()
    after = np.searchsorted(wanted, starts)
    to_next = wanted[after.clip(max=len(wanted) - 1)] - starts
    is_before = (after < len(wanted)) & ((to_next < symbols["size"]) | (to_next < np.uint64(_NEAR_BYTES)))
    since_last = starts - wanted[(after - 1).clip(min=0)]
    return np.asarray(is_before | ((after > 0) & (since_last < np.uint64(_NEAR_BYTES))), bool)


def _build(elf: Elf, image: Image, symbols: npt.NDArray[np.void], strings: Section) -> SymbolTable:
    symbols = symbols[_MAY_BE_CODE[symbols["info"] & 15]]
    kinds = symbols["info"] & 15
    is_function = (kinds == _STT_FUNC) | (kinds == _STT_GNU_IFUNC)
    is_code = np.array([section.flags & _SHF_EXECINSTR != 0 for section in elf.sections], bool)
    in_code = (symbols["section"] < len(is_code)) & np.append(is_code, False)[symbols["section"].clip(max=len(is_code))]
    kept = symbols[(symbols["section"] != 0) & (symbols["address"] != 0) & (is_function | (in_code & (kinds == _STT_NOTYPE)))]
    first, second = _leading_characters(image, strings, kept["name"])
    # aarch64 mapping symbols ($x, $d) are no functions, and what has no name cannot be shown.
    is_named = (first != ord("$")) & (first != 0)
    kept, first, second = kept[is_named], first[is_named], second[is_named]
    is_label = kept["info"] & 15 == _STT_NOTYPE
    if is_label.any():
        is_outside = np.ones(len(kept), bool)
        is_outside[is_label] = ~_covered(kept["address"][is_label], kept[~is_label])
        kept, first, second, is_label = (part[is_outside] for part in (kept, first, second, is_label))
    is_local = kept["info"] >> 4 == _STB_LOCAL
    underscores = (first == ord("_")).astype(np.uint8) + ((first == ord("_")) & (second == ord("_")))
    ranks = (is_label * 32 + (kept["size"] == 0) * 16 + is_local * 4 + underscores).astype(np.uint8)
    return SymbolTable(kept["address"], kept["size"], _section_ends(elf, kept["section"]), kept["name"], ranks)


def _leading_characters(
    image: Image, strings: Section, places: npt.NDArray[np.uint32]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """The first two characters of each name, NUL where there are none; a large string table is never held as a whole."""
    if strings.size_bytes <= _WHOLE_BYTES:
        text = np.frombuffer(image.read(strings.offset, strings.size_bytes) + b"\0\0", np.uint8)
        within = np.minimum(places, strings.size_bytes)
        return text[within], text[within + 1]
    order = np.argsort(places, kind="stable")
    in_order = places[order]
    first, second = np.zeros(len(places), np.uint8), np.zeros(len(places), np.uint8)
    for at in range(0, strings.size_bytes, _BLOCK_BYTES):
        size_bytes = min(_BLOCK_BYTES + 1, strings.size_bytes - at)
        text = np.frombuffer(image.read(strings.offset + at, size_bytes) + b"\0\0", np.uint8)
        low, high = np.searchsorted(in_order, [at, at + _BLOCK_BYTES])
        within = np.minimum(in_order[low:high] - at, size_bytes)
        first[order[low:high]], second[order[low:high]] = text[within], text[within + 1]
    return first, second


def _covered(addresses: Addresses, functions: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
    """Whether an address lies in the function that starts next before it."""
    if not len(functions):
        return np.zeros(len(addresses), bool)
    starts = functions["address"].copy()
    order = np.argsort(starts, kind="stable")
    before = np.searchsorted(starts, addresses, "right", order) - 1
    distance = addresses - starts[order[before]]
    is_inside = (distance < functions["size"][order[before]]) | (distance == 0)
    return np.asarray((before >= 0) & is_inside, bool)


def _section_ends(elf: Elf, indices: npt.NDArray[np.uint16]) -> Addresses:
    """Where the section of each symbol ends; symbols of no section end with the address space."""
    ends = np.array([*(min(section.address + section.size, _LAST) for section in elf.sections), _LAST], np.uint64)
    return np.asarray(ends[indices.clip(max=len(elf.sections))], np.uint64)
