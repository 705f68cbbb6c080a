"""Who is connected to a Unix socket: the kernel's socket diagnosis tells the other end of each
connection, and /proc whose it is (linux/unix_diag.h, sock_diag(7)).

Written here because /proc/net/unix does not tell the other end. It sees the sockets of its own
network namespace only.
"""

import os
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from necroscope.symbols.broker_process import read_sockets

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

# By pid, the inodes of its sockets with blanks between them; OSError if it is gone.
SocketReader = Callable[[int], bytes]


def peers(paths: Iterable[str]) -> list[int]:
    """The inodes of the other ends of all connections that were accepted at these paths; none where
    the kernel does not report it.
    """
    # /var/run is a link to /run on every node; a daemon may be given either.
    names = {path.encode() for path in paths}
    names |= {b"/var" + name for name in names if name.startswith(b"/run/")}
    try:
        return [peer for name, peer in _dump() if name in names and peer]
    except (OSError, struct.error):
        return []


def socket_reader(root: Path) -> SocketReader:
    """For a process that may look at others' descriptors itself (CAP_SYS_PTRACE)."""
    return lambda pid: read_sockets(os.fsencode(root / "proc" / str(pid)))


def holders(root: Path, inodes: Iterable[int], sockets_of: SocketReader) -> dict[int, str]:
    """By the inode of a socket, the pid of a process that holds it. The latest processes are asked
    first: a client may be gone soon.
    """
    wanted = {b"%d" % inode: inode for inode in inodes}
    found: dict[int, str] = {}
    pids = [int(name) for name in os.listdir(root / "proc") if name.isdecimal()] if wanted else []
    for pid in sorted(pids, reverse=True)[:_PROCESSES]:
        with suppress(OSError):  # gone, or not ours to look at
            held = wanted.keys() & set(sockets_of(pid).split())
            found |= {wanted[name]: str(pid) for name in held}
        if len(found) == len(wanted):
            break
    return found


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
