"""Routes, neighbours and rules by netlink (rtnetlink(7)), thousands in a moment: one message each,
many in one call.
"""

import socket
import struct
from collections.abc import Callable, Iterable
from typing import Final

_NEW_ROUTE, _NEW_NEIGHBOUR, _NEW_RULE = 24, 28, 32
_REQUEST, _CREATE, _ACKNOWLEDGE = 0x1, 0x400, 0x4
_PERMANENT: Final = 0x80
_MAIN_TABLE: Final = 254
_BATCH: Final = 64
_ERROR: Final = 2


def make_all(
    numbers: Iterable[int], message: Callable[[int], tuple[int, bytes]], batch: int = _BATCH
) -> None:
    """One message for each number; the last of a batch is acknowledged, so that none outruns the
    kernel.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.bind((0, 0))
        for number in numbers:
            kind, body = message(number)
            flags = _REQUEST | _CREATE | (_ACKNOWLEDGE if number % batch == 0 else 0)
            kernel.send(struct.pack("<IHHII", 16 + len(body), kind, flags, number, 0) + body)
            if flags & _ACKNOWLEDGE:
                _check(kernel.recv(1 << 16))


def _check(answer: bytes) -> None:
    kind = struct.unpack_from("<H", answer, 4)[0]
    code = struct.unpack_from("<i", answer, 16)[0] if kind == _ERROR else 0
    if code:
        raise OSError(-code, "netlink refused it")


def route(address: bytes, device: int) -> tuple[int, bytes]:
    """To one address, by a device."""
    head = struct.pack("<BBBBBBBBI", socket.AF_INET, 32, 0, 0, _MAIN_TABLE, 4, 253, 1, 0)
    return _NEW_ROUTE, head + _attribute(1, address) + _attribute(4, struct.pack("<I", device))


def neighbour(address: bytes, hardware: bytes, device: int) -> tuple[int, bytes]:
    """One that stays."""
    head = struct.pack("<BBHiHBB", socket.AF_INET, 0, 0, device, _PERMANENT, 0, 0)
    return _NEW_NEIGHBOUR, head + _attribute(1, address) + _attribute(2, hardware)


def rule(source: bytes, priority: int) -> tuple[int, bytes]:
    """Packets from an address look into the main table, as they would without it."""
    head = struct.pack("<BBBBBBBBI", socket.AF_INET, 0, 32, 0, _MAIN_TABLE, 0, 0, 1, 0)
    return _NEW_RULE, head + _attribute(2, source) + _attribute(6, struct.pack("<I", priority))


def _attribute(kind: int, data: bytes) -> bytes:
    padding = bytes(-len(data) % 4)
    return struct.pack("<HH", 4 + len(data), kind) + data + padding
