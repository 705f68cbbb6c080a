"""One fact, and how a text file of the node becomes one: bounded, printable, None where it cannot
be read.
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.names import clean

VALUE_LIMIT: Final = 2_000
FILE_LIMIT_BYTES: Final = 1 << 20
_PIECE_BYTES: Final = 1 << 20


class Fact(NamedTuple):
    kind: str
    name: str
    value: str


def fact(kind: str, name: str, value: str | bytes | int) -> Fact:
    return Fact(
        kind, clean(name), clean(str(value) if isinstance(value, int) else value, VALUE_LIMIT)
    )


def read_pieces(path: Path, limit_bytes: int) -> Iterator[bytes]:
    """A regular file (those of /proc and /sys are), at most this much of it. It may hang: we are in
    the child for that.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        while limit_bytes > 0 and (piece := os.read(descriptor, min(_PIECE_BYTES, limit_bytes))):
            limit_bytes -= len(piece)
            yield piece
    finally:
        os.close(descriptor)


def read_bytes(path: Path, limit_bytes: int = FILE_LIMIT_BYTES) -> bytes | None:
    """The same at once; None if it cannot be read."""
    try:
        return b"".join(read_pieces(path, limit_bytes))
    except OSError:
        return None


def read_text(path: Path) -> str | None:
    """A small file as one line; None if it cannot be read or is empty."""
    data = read_bytes(path, 1 << 16)
    if data is None:
        return None
    return clean(b" ".join(data.split()), VALUE_LIMIT) or None


def list_names(path: Path, limit: int = 10_000) -> list[str]:
    try:
        return sorted(os.listdir(path))[:limit]
    except OSError:
        return []
