"""Who is connected to a Unix socket: the kernel's socket diagnosis tells the other end of each
connection, and /proc whose it is (linux/unix_diag.h, sock_diag(7)).

Written here because /proc/net/unix does not tell the other end. It sees the sockets of its own
network namespace only.
"""

import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_REQUEST_DUMP: Final = 0x1 | 0x300
_DONE, _ERROR = 3, 2
_SHOW_NAME, _SHOW_PEER = 1, 4
_ATTRIBUTE_NAME, _ATTRIBUTE_PEER = 0, 2
_ALL_STATES: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")
_QUESTION: Final = struct.Struct("=BBHIIIII")
# struct unix_diag_msg: family, type, state, pad, inode, cookie.
_ANSWER: Final = struct.Struct("=BBBBIII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_TIMEOUT_S: Final = 1.0
_ANSWER_BYTES: Final = 16 << 20
_PROCESSES: Final = 4_000
_DESCRIPTORS: Final = 1_024


def clients(root: Path, path: str) -> list[str]:
    """The pids of processes that hold the other end of a connection to the socket; none where the
    kernel does not tell.
    """
    wanted = {f"socket:[{inode}]" for inode in peers(path)}
    if not wanted:
        return []
    pids = [name for name in os.listdir(root / "proc") if name.isdecimal()][:_PROCESSES]
    return [pid for pid in pids if _holds(root / "proc" / pid / "fd", wanted)]


def peers(path: str) -> list[int]:
    """The inodes of the other ends of all connections that were accepted at a path."""
    # /var/run is a link to /run on every node; a daemon may be given either.
    names = {path.encode(), (f"/var{path}" if path.startswith("/run/") else path).encode()}
    try:
        return [peer for name, peer in _dump() if name in names and peer]
    except (OSError, struct.error):
        return []


def _holds(folder: Path, wanted: set[str]) -> bool:
    try:
        names = os.listdir(folder)[:_DESCRIPTORS]
        return any(os.readlink(folder / name) in wanted for name in names)
    except OSError:  # gone, or not ours to look at
        return False


def _dump() -> Iterator[tuple[bytes, int]]:
    """Name and peer of every Unix socket."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as asking:
        asking.settimeout(_TIMEOUT_S)
        show = _SHOW_NAME | _SHOW_PEER
        question = _QUESTION.pack(socket.AF_UNIX, 0, 0, _ALL_STATES, 0, show, 0, 0)
        length = _HEADER.size + len(question)
        head = _HEADER.pack(length, _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
        asking.send(head + question)
        left = _ANSWER_BYTES
        while left > 0:
            data = asking.recv(1 << 16)
            left -= len(data)
            for kind, body in _messages(data):
                if kind in (_DONE, _ERROR):
                    return
                yield parse_socket(body)


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, place)
        if length < _HEADER.size:
            return
        yield kind, data[place + _HEADER.size : place + length]
        place += (length + 3) & ~3


def parse_socket(body: bytes) -> tuple[bytes, int]:
    """Name and peer of one socket; empty and 0 where it has none."""
    name, peer = b"", 0
    place = _ANSWER.size
    while place + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, place)
        value = body[place + _ATTRIBUTE.size : place + length]
        if length < _ATTRIBUTE.size:
            break
        if kind == _ATTRIBUTE_NAME:
            name = value.rstrip(b"\0")
        elif kind == _ATTRIBUTE_PEER:
            (peer,) = struct.unpack("=I", value)
        place += (length + 3) & ~3
    return name, peer
