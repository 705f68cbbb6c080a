"""The headers of an ELF file (include/uapi/linux/elf.h): segments, sections, build id. 64 bit,
little endian, x86_64 and aarch64.

Ours and not pyelftools because that builds a Python object for each symbol: it takes 200 to 500
times as long to load a file (libpython: 635 ms), and a node has hundreds of them. Every offset and
count in the file is taken for a lie until it was checked.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from necroscope.symbols.image import Image, ImageError

_MACHINES: Final = (62, 183)
_HEADER: Final = struct.Struct("<4s5B7xHHIQQQIHHHHHH")
_SECTIONS_LIMIT: Final = 1 << 17
_NOTE_LIMIT_BYTES: Final = 1 << 16
_NAMES_LIMIT_BYTES: Final = 1 << 20
_PT_LOAD: Final = 1
_PT_NOTE: Final = 4
_PF_X: Final = 1
_SHT_NOTE: Final = 7
_NT_GNU_BUILD_ID: Final = 3
_BUILD_ID_LIMIT_BYTES: Final = 64

_SEGMENT: Final = struct.Struct("<IIQQ8xQ16x")
_SECTION: Final = struct.Struct("<IIQQQQI20x")
_RANGE: Final = struct.Struct("<QQQ")
_LAST: Final = (1 << 64) - 1


class ProgramHeader(NamedTuple):
    type: int
    flags: int
    offset: int
    address: int
    size: int


class SectionHeader(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int


class Section(NamedTuple):
    """Where a section's bytes lie in the file."""

    offset: int
    size_bytes: int
    link: int


class Segments:
    """Where the file's bytes lie in memory; small enough to keep for thousands of files. `packed`
    is that for the native library (struct range).
    """

    __slots__ = ("count", "packed", "ranges")

    def __init__(self, headers: Iterable[ProgramHeader]) -> None:
        # Pages at a seam belong to two segments; code is in the executable one, so that comes
        # first.
        loads = sorted(
            (header for header in headers if header.type == _PT_LOAD),
            key=lambda load: not load.flags & _PF_X,
        )
        self.ranges = [(load.offset, load.size, load.address) for load in loads]
        self.count = len(loads)
        self.packed = b"".join(
            _RANGE.pack(*(min(part, _LAST) for part in loaded)) for loaded in self.ranges
        )


class Elf:
    """Headers only; symbols are read by `function_index`."""

    def __init__(self, image: Image) -> None:
        """ImageError for what is no ELF file of ours (32 bit and other machines included)."""
        header = image.read(0, _HEADER.size)
        magic, width, order, *rest = _HEADER.unpack(header)
        (
            _,
            _,
            _,
            _,
            machine,
            _,
            _,
            segments_at,
            sections_at,
            _,
            _,
            segment_size,
            segments,
            section_size,
            sections,
            names,
        ) = rest
        if magic != b"\x7fELF" or width != 2 or order != 1 or machine not in _MACHINES:
            raise ImageError("no 64-bit little-endian ELF file for x86_64 or aarch64")
        headers = [
            ProgramHeader(*fields)
            for fields in _read_headers(image, _SEGMENT, segments_at, segments, segment_size)
        ]
        self.segments = Segments(headers)
        self.sections = _read_sections(image, sections_at, sections, section_size)
        self.build_id = self._find_build_id(headers, image)
        self._header = header
        self._name_section = self._section(names)

    @property
    def layout(self) -> int:
        """Two files of one build id differ when one was stripped: this tells them apart."""
        return zlib.crc32(repr(self.sections).encode(), zlib.crc32(self._header))

    def section(self, name: bytes, image: Image) -> Section | None:
        """By its name; one read of all names, because each read is a system call."""
        table = self._name_section
        if table is None or table.size_bytes > _NAMES_LIMIT_BYTES:
            return None
        names, sought = image.read(table.offset, table.size_bytes), name + b"\0"
        for index, header in enumerate(self.sections):
            if header.type and names.startswith(sought, header.name):
                return self._section(index)
        return None

    def section_of_type(self, section_type: int) -> Section | None:
        return next(
            (
                self._section(index)
                for index, header in enumerate(self.sections)
                if header.type == section_type
            ),
            None,
        )

    def linked(self, section: Section) -> Section | None:
        return self._section(section.link)

    def _section(self, index: int) -> Section | None:
        if not 0 < index < len(self.sections):
            return None
        header = self.sections[index]
        return Section(header.offset, header.size, header.link)

    def _find_build_id(self, segments: list[ProgramHeader], image: Image) -> str | None:
        places = [
            (segment.offset, segment.size) for segment in segments if segment.type == _PT_NOTE
        ]
        places += [
            (section.offset, section.size) for section in self.sections if section.type == _SHT_NOTE
        ]
        for offset, size in places:
            # A debug file keeps the program headers of a file whose bytes it does not have.
            if offset + size <= image.size_bytes and size <= _NOTE_LIMIT_BYTES:
                build_id = _build_id_in(image.read(offset, size))
                if build_id is not None:
                    return build_id
        return None


def _read_sections(image: Image, offset: int, count: int, size: int) -> list[SectionHeader]:
    if offset == 0:
        return []
    if count == 0:  # more than 65,279: the count is in the first section's size
        count = next(
            (
                SectionHeader(*fields).size
                for fields in _read_headers(image, _SECTION, offset, 1, size)
            ),
            0,
        )
    return [
        SectionHeader(*fields) for fields in _read_headers(image, _SECTION, offset, count, size)
    ]


def _read_headers(
    image: Image, layout: struct.Struct, offset: int, count: int, size: int
) -> Iterator[tuple[int, ...]]:
    if count == 0:
        return iter(())
    if size != layout.size or count > _SECTIONS_LIMIT:
        raise ImageError(f"{count} header entries of {size} bytes")
    return layout.iter_unpack(image.read(offset, count * size))


def _build_id_in(notes: bytes) -> str | None:
    at = 0
    while at + 12 <= len(notes):
        name_size, value_size, note_type = struct.unpack_from("<III", notes, at)
        value_at = at + 12 + (name_size + 3 & ~3)
        if (
            note_type == _NT_GNU_BUILD_ID
            and notes[at + 12 : at + 16] == b"GNU\0"
            and 0 < value_size <= _BUILD_ID_LIMIT_BYTES
        ):
            value = notes[value_at : value_at + value_size]
            return value.hex() if len(value) == value_size else None
        at = value_at + (value_size + 3 & ~3)
    return None
