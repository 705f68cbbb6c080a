"""The headers of an ELF file (include/uapi/linux/elf.h): segments, sections, build id. 64 bit, little endian, x86_64 and aarch64.

Ours and not pyelftools because that builds a Python object for each symbol: it takes 200 to 500 times as long to load a file
(libpython: 635 ms), and a node has hundreds of them. Every offset and count in the file is taken for a lie until it was checked.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from necroscope.symbols.image import Image, ImageError

_MACHINES: Final = (62, 183)
_HEADER: Final = struct.Struct("<4s5B7xHHIQQQIHHHHHH")
_SECTIONS_LIMIT: Final = 1 << 17
_NOTE_LIMIT_BYTES: Final = 1 << 16
_PT_LOAD: Final = 1
_PT_NOTE: Final = 4
_PF_X: Final = 1
_SHT_NOTE: Final = 7
_NT_GNU_BUILD_ID: Final = 3
_BUILD_ID_LIMIT_BYTES: Final = 64

_SEGMENT: Final = np.dtype(
    {
        "names": ["type", "flags", "offset", "address", "size"],
        "formats": ["<u4", "<u4", "<u8", "<u8", "<u8"],
        "offsets": [0, 4, 8, 16, 32],
        "itemsize": 56,
    }
)
_SECTION: Final = np.dtype(
    {
        "names": ["name", "type", "flags", "address", "offset", "size", "link"],
        "formats": ["<u4", "<u4", "<u8", "<u8", "<u8", "<u8", "<u4"],
        "offsets": [0, 4, 8, 16, 24, 32, 40],
        "itemsize": 64,
    }
)
Records = npt.NDArray[np.void]


class Section(NamedTuple):
    """Where a section's bytes lie in the file."""

    offset: int
    size_bytes: int
    link: int


class Segments:
    """Where the file's bytes lie in memory; small enough to keep for thousands of files."""

    __slots__ = ("_ranges",)

    def __init__(self, records: Records) -> None:
        # Pages at a seam belong to two segments; code is in the executable one, so that comes first.
        loads = records[records["type"] == _PT_LOAD]
        loads = loads[np.argsort((loads["flags"] & _PF_X) == 0, kind="stable")]
        self._ranges = [(int(load["offset"]), int(load["size"]), int(load["address"])) for load in loads]

    def addresses_of(self, offsets: Sequence[int]) -> list[int]:
        """Virtual addresses of file offsets, 0 for what is not loaded: no function is there."""
        return [
            next((offset - start + address for start, size, address in self._ranges if 0 <= offset - start < size), 0)
            for offset in offsets
        ]

    def addresses_at(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """The same for many offsets at once."""
        found = np.zeros(len(offsets), np.uint64)
        is_open = offsets >= 0
        for start, size, address in self._ranges:
            within = offsets.view(np.uint64) - np.uint64(start)
            is_here = is_open & (within < np.uint64(size))
            found[is_here] = within[is_here] + np.uint64(address)
            is_open &= ~is_here
        return found

    def spans_of(self, offsets: Sequence[int]) -> list[tuple[int, int]]:
        """The file ranges of the segments that offsets lie in; an offset that is not loaded stands for itself."""
        return [
            next(((start, start + size) for start, size, _ in self._ranges if 0 <= offset - start < size), (offset, offset + 1))
            for offset in offsets
        ]


class Elf:
    """Headers only, to be used while the image is open; symbols are read by `elf_symbols`."""

    def __init__(self, image: Image) -> None:
        """ImageError for what is no ELF file of ours (32 bit and other machines included)."""
        header = image.read(0, _HEADER.size)
        magic, width, order, *rest = _HEADER.unpack(header)
        _, _, _, _, machine, _, _, segments_at, sections_at, _, _, segment_size, segments, section_size, sections, names = rest
        if magic != b"\x7fELF" or width != 2 or order != 1 or machine not in _MACHINES:
            raise ImageError("no 64-bit little-endian ELF file for x86_64 or aarch64")
        self._image = image
        records = _read_records(image, _SEGMENT, segments_at, segments, segment_size)
        self.segments = Segments(records)
        self.sections = self._read_sections(sections_at, sections, section_size)
        self._name_section = self._section(names)
        # Two files of one build id differ when one was stripped: the layout tells them apart.
        self.layout = zlib.crc32(self.sections.tobytes(), zlib.crc32(header))
        self.build_id = self._find_build_id(records)

    def section(self, name: bytes) -> Section | None:
        for index in np.flatnonzero(self.sections["type"] != 0).tolist():
            if self._section_name(index) == name:
                return self._section(index)
        return None

    def section_of_type(self, section_type: int) -> Section | None:
        found = np.flatnonzero(self.sections["type"] == section_type)
        return self._section(int(found[0])) if len(found) else None

    def linked(self, section: Section) -> Section | None:
        return self._section(section.link)

    def _section(self, index: int) -> Section | None:
        if not 0 < index < len(self.sections):
            return None
        record = self.sections[index]
        return Section(int(record["offset"]), int(record["size"]), int(record["link"]))

    def _section_name(self, index: int) -> bytes:
        if self._name_section is None:
            return b""
        at = int(self.sections[index]["name"])
        size_bytes = min(32, max(self._name_section.size_bytes - at, 0))
        return self._image.read(self._name_section.offset + at, size_bytes).partition(b"\0")[0]

    def _read_sections(self, offset: int, count: int, size: int) -> Records:
        if offset == 0:
            return np.zeros(0, _SECTION)
        if count == 0:  # more than 65,279: the count is in the first section's size
            count = int(_read_records(self._image, _SECTION, offset, 1, size)[0]["size"])
        return _read_records(self._image, _SECTION, offset, count, size)

    def _find_build_id(self, segments: Records) -> str | None:
        notes = [segments[segments["type"] == _PT_NOTE], self.sections[self.sections["type"] == _SHT_NOTE]]
        for records in notes:
            for offset, size in zip(records["offset"].tolist(), records["size"].tolist(), strict=True):
                # A debug file keeps the program headers of a file whose bytes it does not have.
                if offset + size <= self._image.size_bytes and size <= _NOTE_LIMIT_BYTES:
                    build_id = _build_id_in(self._image.read(offset, size))
                    if build_id is not None:
                        return build_id
        return None


def _read_records(image: Image, record: np.dtype[np.void], offset: int, count: int, size: int) -> Records:
    if count == 0:
        return np.zeros(0, record)
    if size != record.itemsize or count > _SECTIONS_LIMIT:
        raise ImageError(f"{count} header entries of {size} bytes")
    return np.frombuffer(image.read(offset, count * size), record)


def _build_id_in(notes: bytes) -> str | None:
    at = 0
    while at + 12 <= len(notes):
        name_size, value_size, note_type = struct.unpack_from("<III", notes, at)
        value_at = at + 12 + (name_size + 3 & ~3)
        if note_type == _NT_GNU_BUILD_ID and notes[at + 12 : at + 16] == b"GNU\0" and 0 < value_size <= _BUILD_ID_LIMIT_BYTES:
            value = notes[value_at : value_at + value_size]
            return value.hex() if len(value) == value_size else None
        at = value_at + (value_size + 3 & ~3)
    return None
