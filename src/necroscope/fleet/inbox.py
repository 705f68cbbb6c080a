"""The inbox of a lake: batches as they came, one immutable file per group commit, read back only to
fill the tables.

A file is MAGIC, then for each batch its lengths and the CRC32 of it all (little endian), where it
came from as JSON, and its body.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from necroscope.errors import CorruptData

INBOX: Final = "inbox"
_MAGIC: Final = b"necroscope inbox 1\n"
_LENGTHS: Final = struct.Struct("<II")
_SUM: Final = struct.Struct("<I")
_HEAD_BYTES: Final = _LENGTHS.size + _SUM.size


@dataclass(frozen=True, slots=True)
class Receipt:
    """A batch's body, the cluster that its token stands for, and the collector's clock when it
    came.

    `sent_ns` is the node's clock at that sending, where it told; `clock` what the node measured of
    the collector's clock minus its own, and how far that may be off.
    """

    cluster: str
    received_ns: int
    sent_ns: int | None
    body: bytes
    clock: tuple[int, int] | None = None


def inbox_path(time_ns: int, collector: str) -> str:
    return f"{INBOX}/{time_ns:020d}-{collector}.batches"


def origin_of(path: str) -> tuple[int, str] | None:
    """When and by which collector a file was written; None if it is none of ours."""
    time_ns, dash, collector = PurePosixPath(path).stem.partition("-")
    return (
        (int(time_ns), collector)
        if dash and time_ns.isdecimal() and path.endswith(".batches")
        else None
    )


def pack(receipts: Iterable[Receipt]) -> bytes:
    parts = [_MAGIC]
    for receipt in receipts:
        clock = list(receipt.clock) if receipt.clock is not None else []
        known = [receipt.cluster, receipt.received_ns, receipt.sent_ns, *clock]
        origin = json.dumps(known).encode()
        lengths = _LENGTHS.pack(len(origin), len(receipt.body))
        parts += [lengths, _SUM.pack(_sum_of(lengths, origin, receipt.body)), origin, receipt.body]
    return b"".join(parts)


def _sum_of(lengths: bytes, origin: bytes, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(origin, zlib.crc32(lengths)))


def unpack(data: bytes) -> Iterator[Receipt]:
    """The batches of a file; CorruptData where a byte is off, after those before it."""
    if not data.startswith(_MAGIC):
        raise CorruptData("this is not a file of an inbox")
    position = len(_MAGIC)
    while position < len(data):
        start = position + _HEAD_BYTES
        if start > len(data):
            raise CorruptData("an inbox file is cut off")
        lengths = data[position : position + _LENGTHS.size]
        origin_bytes, body_bytes = _LENGTHS.unpack(lengths)
        middle = start + origin_bytes
        origin, body = data[start:middle], data[middle : middle + body_bytes]
        if _sum_of(lengths, origin, body) != _SUM.unpack_from(data, position + _LENGTHS.size)[0]:
            raise CorruptData("an inbox file fails its checksum")
        cluster, received_ns, sent_ns, *clock = json.loads(origin)
        yield Receipt(cluster, received_ns, sent_ns, body, tuple(clock) if clock else None)
        position = middle + body_bytes
