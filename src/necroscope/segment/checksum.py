"""Small JSON files that are written whole or not at all, and whose every byte is covered by a
CRC32.

The file is `{"crc32": "89abcdef",\\n"content": BODY}\\n`: valid JSON for any reader, and the sum is
of the bytes of BODY.
"""

import contextlib
import json
import os
import zlib
from pathlib import Path
from typing import Any, Final

from necroscope.errors import CorruptData

_HEAD: Final = '{{"crc32": "{:08x}",\n"content": '
_HEAD_BYTES: Final = len(_HEAD.format(0))
_TAIL: Final = b"}\n"


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
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CorruptData(f"{path.name} cannot be read: {error.strerror}") from None
    body = data[_HEAD_BYTES : -len(_TAIL)]
    if data != _HEAD.format(zlib.crc32(body)).encode() + body + _TAIL:
        raise CorruptData(f"{path.name} fails its checksum")
    try:
        return json.loads(body)
    except ValueError:
        raise CorruptData(f"{path.name} is no JSON") from None


def sync_directory(path: Path) -> None:
    """Make names in a directory durable; file systems that cannot do so do not need it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
