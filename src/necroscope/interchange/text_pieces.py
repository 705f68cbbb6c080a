"""Text files, plain or gzipped, as pieces of whole lines: bounded in memory, with the byte offset
of every fault.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from necroscope.errors import CorruptData
from necroscope.interchange.unreadable import unreadable

PIECE_BYTES: Final = 2 << 20
LINE_MOST_BYTES: Final = 1 << 20
_GZIP_MAGIC: Final = b"\x1f\x8b"


class Piece(NamedTuple):
    """Whole lines; `offset` is that of the first byte in the text (unpacked, if it was gzipped)."""

    offset: int
    content: bytes


def open_text(path: Path) -> BinaryIO:
    try:
        with path.open("rb") as file:
            is_packed = file.read(2) == _GZIP_MAGIC
        return cast("BinaryIO", gzip.open(path)) if is_packed else path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from None


def read_pieces(path: Path, ending: bytes = b"\n") -> Iterator[Piece]:
    """Pieces that end with `ending`, but for the last. CorruptData for binary bytes, lines too long
    and a broken gzip stream.
    """
    offset = 0
    rest = b""
    with open_text(path) as file:
        while True:
            content = _read(file, path, offset + len(rest))
            _check(content, path, offset + len(rest), rest)
            at_end = not content
            content = rest + content
            cut = len(content) if at_end else content.rfind(ending) + len(ending)
            if cut < len(ending) and not at_end:
                if len(content) > 8 * PIECE_BYTES:
                    raise CorruptData(
                        f"{path}: byte {offset}: {len(content)} bytes without an end of"
                        f" {'sample' if len(ending) > 1 else 'line'}"
                    )
                rest = content
                continue
            if cut:
                yield Piece(offset, content[:cut])
            offset, rest = offset + cut, content[cut:]
            if at_end:
                return


def _read(file: BinaryIO, path: Path, offset: int) -> bytes:
    try:
        return file.read(PIECE_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise CorruptData(f"{path}: cut at byte {offset} of the unpacked text: {error}") from None


def _check(content: bytes, path: Path, offset: int, rest: bytes) -> None:
    zero = content.find(b"\0")
    if zero >= 0:
        raise CorruptData(
            f"{path}: byte {offset + zero}: a zero byte, so this is not text",
            "give the file that the tool wrote as text",
        )
    last_end = max(rest.rfind(b"\n"), 0)
    if len(content) >= LINE_MOST_BYTES and content.find(b"\n", 0, LINE_MOST_BYTES) < 0:
        raise CorruptData(
            f"{path}: byte {offset - len(rest) + last_end}: a line of more than {LINE_MOST_BYTES}"
            " bytes"
        )
