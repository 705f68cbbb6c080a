"""Bytes of a file or of memory by offset, so that an ELF reader never maps a stranger's file.

A mapped file that its owner truncates kills the reader with SIGBUS, and a mapping or an open
descriptor kept for later holds the owner's mount busy. So files are read with pread, and closed
when the question is answered.
"""

import os
from typing import Final, Protocol

# One more than a name may have to be demangled (symbol_names.MANGLED_LIMIT): what is left of a
# longer one is none of those.
NAME_LIMIT_BYTES: Final = 1025


FileIdentity = tuple[int, int, int, int]


class ImageError(Exception):
    """The file does not hold what it says it holds; never leaves `symbols`."""


class Image(Protocol):
    size_bytes: int

    def read(self, offset: int, size_bytes: int) -> bytes:
        """Exactly these bytes, or ImageError."""


class BytesImage:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size_bytes = len(content)

    def read(self, offset: int, size_bytes: int) -> bytes:
        check_range(self, offset, size_bytes)
        return self._content[offset : offset + size_bytes]


class FileImage:
    """Borrows the descriptor: the caller that opened it closes it. A file of another `identity` was
    replaced or written to.
    """

    def __init__(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        self.descriptor = descriptor
        self.size_bytes = status.st_size
        self.identity: FileIdentity = (
            *(status.st_dev, status.st_ino, status.st_size),
            status.st_mtime_ns,
        )

    def read(self, offset: int, size_bytes: int) -> bytes:
        check_range(self, offset, size_bytes)
        try:
            content = os.pread(self.descriptor, size_bytes, offset)
        except OSError as error:
            raise ImageError(error.strerror) from None
        if len(content) != size_bytes:
            raise ImageError("truncated while it was read")
        return content


def check_range(image: Image, offset: int, size_bytes: int) -> None:
    if offset < 0 or size_bytes < 0 or offset + size_bytes > image.size_bytes:
        raise ImageError(f"{size_bytes} bytes at {offset} are not in a file of {image.size_bytes}")
