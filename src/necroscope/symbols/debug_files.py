"""Separate debug files: /usr/lib/debug/.build-id/xx/yyy.debug by build id, else by
`.gnu_debuglink`, as gdb searches.
"""

import os
import posixpath
import struct
import zlib
from collections.abc import Iterator
from typing import Final

from necroscope.symbols.elf import Elf
from necroscope.symbols.function_index import FunctionIndex, index_symtab_with_names
from necroscope.symbols.image import FileImage, Image, ImageError
from necroscope.symbols.target_files import open_in_root

_DEBUG_ROOT: Final = "/usr/lib/debug"
_LINK_LIMIT_BYTES: Final = 4096
# Only files without a build id need their CRC checked, which reads them whole.
_CRC_LIMIT_BYTES: Final = 64 << 20


def find_functions(elf: Elf, image: Image, path: str, roots: list[int]) -> FunctionIndex | None:
    """The functions of the debug file installed for an ELF file, searched in each root directory
    (given by descriptor).
    """
    link = _read_link(elf, image)
    for root in roots:
        for candidate in _candidates(elf.build_id, path, link):
            descriptor = open_in_root(root, os.fsencode(candidate))
            if descriptor is None:
                continue
            try:
                debug_image = FileImage(descriptor)
                if _belongs(debug_image, elf.build_id, link):
                    return index_symtab_with_names(debug_image)
            except ImageError:
                continue
            finally:
                os.close(descriptor)
    return None


def _read_link(elf: Elf, image: Image) -> tuple[str, int] | None:
    section = elf.section(b".gnu_debuglink", image)
    if section is None or not 8 <= section.size_bytes <= _LINK_LIMIT_BYTES:
        return None
    content = image.read(section.offset, section.size_bytes)
    name = os.fsdecode(content.partition(b"\0")[0])
    (checksum,) = struct.unpack("<I", content[-4:])
    return (name, checksum) if name and "/" not in name else None


def _candidates(build_id: str | None, path: str, link: tuple[str, int] | None) -> Iterator[str]:
    if build_id is not None and len(build_id) > 2:
        yield f"{_DEBUG_ROOT}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    if link is not None:
        directory = posixpath.dirname(path)
        yield f"{directory}/{link[0]}"
        yield f"{directory}/.debug/{link[0]}"
        yield f"{_DEBUG_ROOT}{directory}/{link[0]}"


def _belongs(debug_image: FileImage, build_id: str | None, link: tuple[str, int] | None) -> bool:
    debug_build_id = Elf(debug_image).build_id
    if build_id is not None and debug_build_id is not None:
        return build_id == debug_build_id
    return (
        link is not None
        and debug_image.size_bytes <= _CRC_LIMIT_BYTES
        and _checksum(debug_image) == link[1]
    )


def _checksum(image: FileImage) -> int:
    checksum = 0
    for offset in range(0, image.size_bytes, 1 << 20):
        checksum = zlib.crc32(image.read(offset, min(1 << 20, image.size_bytes - offset)), checksum)
    return checksum
