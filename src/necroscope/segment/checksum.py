"""Small JSON files that are written whole or not at all, and whose every byte is covered by a
CRC32.

The file is `{"crc32": "89abcdef",\\n"content": BODY}\\n`: valid JSON for any reader, and the sum is
of the bytes of BODY.
"""

import contextlib
import errno
import json
import os
import stat
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Final

from necroscope.errors import CorruptData

_HEAD: Final = '{{"crc32": "{:08x}",\n"content": '
_HEAD_BYTES: Final = len(_HEAD.format(0))
_TAIL: Final = b"}\n"
# A week's spans have some hundred KB; JSON takes up to twenty times its size in memory.
_MOST_BYTES: Final = 16 << 20


def write_checked(path: Path, content: object) -> None:
    body = json.dumps(content, separators=(",", ":")).encode()
    write_whole(path, _HEAD.format(zlib.crc32(body)).encode() + body + _TAIL)


def write_whole(path: Path, data: bytes) -> None:
    """Durable and atomic: a reader sees the old file or the new one. A link in the way is removed,
    never written through.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def read_checked(path: Path) -> Any:
    """The content; CorruptData if a byte is off, FileNotFoundError if there is no such file."""
    try:
        with open_regular(path) as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CorruptData(f"{path.name} cannot be read: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise CorruptData(f"{path.name} has more than {_MOST_BYTES >> 20} MiB")
    body = data[_HEAD_BYTES : -len(_TAIL)]
    if data != _HEAD.format(zlib.crc32(body)).encode() + body + _TAIL:
        raise CorruptData(f"{path.name} fails its checksum")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise CorruptData(f"{path.name} is not JSON that can be read") from None


def open_regular(path: Path) -> BinaryIO:
    """A file to read; OSError where something else is in its place, which might never answer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return open(descriptor, "rb", buffering=0)


def sync_directory(path: Path) -> None:
    """Make names in a directory durable; file systems that cannot do so do not need it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
