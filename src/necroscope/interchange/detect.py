"""What kind of file somebody gave us, by its first bytes and lines."""

import zlib
from enum import Enum
from pathlib import Path
from typing import Final

from necroscope.errors import UsageError
from necroscope.interchange.perf_data.format import MAGIC, MAGIC_BIG_ENDIAN, MAGIC_OLD
from necroscope.interchange.unreadable import unreadable
from necroscope.model.names import clean

_HEAD_BYTES: Final = 1 << 16
_MAGICS: Final = (MAGIC, MAGIC_BIG_ENDIAN, MAGIC_OLD)
_HINT: Final = (
    "give perf.data, the text of `perf script`, folded stacks, `mpstat -P ALL` or `sar -A` as text"
    " or JSON, dmesg, copies of /proc/stat, interrupts or cgroups, or a support bundle; gzipped or"
    " not"
)


class FileKind(Enum):
    PERF_DATA = "perf.data"
    PERF_SCRIPT = "perf script"
    FOLDED = "folded stacks"
    MPSTAT = "mpstat"
    SAR = "sar"
    PROC = "copies of /proc"
    DMESG = "dmesg"


def detect(path: Path) -> FileKind:
    """UsageError with the first bytes for what is none of them; a gzipped perf.data has to be
    unpacked first.
    """
    head, is_packed = _head(path)
    if head[: len(MAGIC)] in _MAGICS:
        if is_packed:
            raise UsageError(f"{path} is a gzipped perf.data", "unpack it first: gunzip -k FILE")
        return FileKind.PERF_DATA
    if not head:
        raise UsageError(
            f"{path} is empty", "the tool that was to write it did not finish: capture again"
        )
    # Not above: perf.data is known by its magic, without the readers of all other kinds.
    from necroscope.interchange.other_kinds import kind_of_other  # noqa: PLC0415

    kind = kind_of_other(head)
    if kind is not None:
        return kind
    raise UsageError(
        f"{path} is not a file that can be imported: it begins with {clean(head[:32])!r}", _HINT
    )


def is_perf_data(path: Path) -> bool:
    """Also of a kind that cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) in _MAGICS
    except OSError:
        return False


def _head(path: Path) -> tuple[bytes, bool]:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise unreadable(path, error) from None
    if head[:2] != b"\x1f\x8b":
        return head, False
    import gzip  # noqa: PLC0415 - only for those who give a packed file

    try:
        with gzip.open(path) as packed:
            return packed.read(_HEAD_BYTES), True
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(
            f"{path} is a broken gzip file: {clean(str(error))}",
            "copy it again, or unpack what is left of it: zcat FILE > TEXT",
        ) from None
