"""The functions of an ELF file: its symbol tables, in the order of their addresses, held by the
native library (core/symbols.c).

What they mean (which of several is shown, where one without a size ends) is worked out there for a
block that is asked for.
"""

import lzma
import struct
from collections.abc import Mapping
from ctypes import (
    POINTER,
    Structure,
    addressof,
    byref,
    c_char_p,
    c_int,
    c_int32,
    c_uint32,
    c_uint64,
    c_void_p,
    create_string_buffer,
)
from functools import cache
from types import MappingProxyType
from typing import Any, Final
from weakref import finalize

from necroscope import native
from necroscope.symbols.elf import Elf, Section, SectionHeader, Segments
from necroscope.symbols.image import BytesImage, FileImage, Image
from necroscope.symbols.messages import BLOCK_BITS, NO_FUNCTION, FunctionBlock

# Symbol and string tables together; librustc_driver, the biggest tried, has 23 MiB.
SYMBOLS_LIMIT_BYTES: Final = 256 << 20
# String tables of other files than the one asked about are kept in memory.
_STRINGS_LIMIT_BYTES: Final = 64 << 20
_DEBUGDATA_LIMIT_BYTES: Final = 64 << 20
# xz -9 needs 65 MiB to unpack.
_XZ_MEMORY_LIMIT_BYTES: Final = 96 << 20

_SYMBOL_BYTES: Final = 24
_SHT_SYMTAB: Final = 2
_SHT_DYNSYM: Final = 11
_SHF_EXECINSTR: Final = 4
_LAST: Final = (1 << 64) - 1
_SECTION: Final = struct.Struct("<QII")  # end, whether it holds code, padding
_ROOM: Final = (1 << 12, 1 << 18)


class _BlockView(Structure):
    _fields_ = (
        ("names_bytes", c_uint64),
        ("count", c_uint32),
        ("capacity", c_uint32),
        *((name, c_void_p) for name in ("starts", "ends", "names")),
    )


@cache
def _library() -> Any:
    tables = (c_void_p, c_void_p, c_uint32, c_char_p, c_uint32)
    return native.load(
        {
            "profile_symbols_new": (
                c_void_p,
                (c_char_p, c_uint64, c_char_p, c_uint32, c_uint64, c_uint64),
            ),
            "profile_symbols_free": (None, (c_void_p,)),
            "profile_symbols_bytes": (c_uint64, (c_void_p,)),
            "profile_symbols_block": (c_int, (*tables, c_uint64, c_int32, POINTER(_BlockView))),
        }
    )


class FunctionIndex:
    """The functions of one symbol section. Names are read from the file that is asked about, or
    from `names` if that is given.
    """

    def __init__(
        self,
        symbols: bytes,
        sections: list[SectionHeader],
        strings: Section,
        names: bytes | None = None,
    ) -> None:
        ends = b"".join(
            _SECTION.pack(
                min(section.address + section.size, _LAST), bool(section.flags & _SHF_EXECINSTR), 0
            )
            for section in sections
        )
        size_bytes = strings.size_bytes if names is None else len(names)
        library = _library()
        self.handle = library.profile_symbols_new(
            symbols,
            len(symbols),
            ends,
            len(sections),
            min(strings.offset, _LAST),
            min(size_bytes, _LAST),
        )
        if not self.handle:
            raise MemoryError
        self.size_bytes = int(library.profile_symbols_bytes(self.handle)) + len(names or b"")
        finalize(self, library.profile_symbols_free, self.handle)
        self.strings = strings
        self.names = names


class FileFunctions:
    """What the tables of a file say of the parts that are loaded; the first that knows a place
    names it. `names` are the string tables of the file that are at hand, by table.
    """

    def __init__(
        self,
        segments: Segments,
        tables: list[FunctionIndex],
        names: Mapping[FunctionIndex, bytes] = MappingProxyType({}),
    ) -> None:
        self.tables = tables
        self.segments = segments
        self.handles = (c_void_p * len(tables))(*(table.handle for table in tables))
        self.strings = (c_char_p * len(tables))(
            *(names.get(table, table.names) for table in tables)
        )

    @property
    def size_bytes(self) -> int:
        return sum(table.size_bytes for table in self.tables)

    def block(self, number: int, image: Image) -> FunctionBlock:
        """The functions of one block of the file's offsets."""
        room = _ROOM
        for _ in range(2):
            starts, ends, names = (
                create_string_buffer(size) for size in (2 * room[0], 4 * room[0], room[1])
            )
            places = (addressof(buffer) for buffer in (starts, ends, names))
            view = _BlockView(room[1], 0, room[0], *places)
            arguments = (
                self.handles,
                self.strings,
                len(self.tables),
                self.segments.packed,
                self.segments.count,
                number,
                descriptor_of(image),
            )
            if _library().profile_symbols_block(*arguments, byref(view)) == 0:
                return FunctionBlock(
                    starts.raw[: 2 * view.count],
                    ends.raw[: 4 * view.count],
                    names.raw[: view.names_bytes],
                )
            room = 1 << BLOCK_BITS, view.names_bytes
        return NO_FUNCTION


def descriptor_of(image: Image) -> int:
    return image.descriptor if isinstance(image, FileImage) else -1


def unpack_debugdata(elf: Elf, image: Image) -> bytes | None:
    """The ELF file in `.gnu_debugdata`."""
    section = elf.section(b".gnu_debugdata", image)
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
    """Functions that `.dynsym` does not have, in an ELF file packed into a section of its own
    ("mini debuginfo").
    """
    content = unpack_debugdata(elf, image)
    return None if content is None else index_symtab_with_names(BytesImage(content))


def index_symtab_with_names(image: Image) -> FunctionIndex | None:
    """`.symtab` of another file than the one asked about, its string table kept in memory."""
    elf = Elf(image)
    section = elf.section_of_type(_SHT_SYMTAB)
    strings = elf.linked(section) if section else None
    is_small = strings is not None and strings.size_bytes <= _STRINGS_LIMIT_BYTES
    return _index(elf, image, _SHT_SYMTAB, keeps_names=True) if is_small else None


def _index(
    elf: Elf, image: Image, section_type: int, *, keeps_names: bool = False
) -> FunctionIndex | None:
    section = elf.section_of_type(section_type)
    strings = elf.linked(section) if section else None
    if (
        section is None
        or strings is None
        or section.size_bytes + strings.size_bytes > SYMBOLS_LIMIT_BYTES
    ):
        return None
    if section.size_bytes < _SYMBOL_BYTES:
        return None
    try:
        symbols = image.read(section.offset, section.size_bytes // _SYMBOL_BYTES * _SYMBOL_BYTES)
        is_kept = keeps_names or isinstance(image, BytesImage)
        names = image.read(strings.offset, strings.size_bytes) if is_kept else None
        return FunctionIndex(symbols, elf.sections, strings, names)
    except MemoryError:
        # More than the lookup process may hold. As good as none: the caller remembers that, and
        # does not try again.
        return None
