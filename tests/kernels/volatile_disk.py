"""A disk with a volatile cache, for a guest whose power is cut: what was not flushed is lost in
part, as the cache of a real disk loses it.

Served to QEMU over NBD (the newstyle handshake and the simple replies of
https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md), because no block driver of QEMU
forgets writes when it is killed. Writes are kept in the order in which they came, with the flushes
between them, so that a run also tells how the disk looked at any moment before.
"""

import random
import socket
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MAGIC: Final = b"NBDMAGIC"
_OPTION_MAGIC: Final = b"IHAVEOPT"
_OPTION_REPLY: Final = 0x3E889045565A9
_REQUEST, _REPLY = 0x25609513, 0x67446698
_EXPORT_NAME, _ABORT, _INFO, _GO = 1, 2, 6, 7
_ACKNOWLEDGED, _INFORMATION, _UNSUPPORTED = 1, 3, (1 << 31) + 1
_READ, _WRITE, _DISCONNECT, _FLUSH = 0, 1, 2, 3
_FORCE_UNIT_ACCESS: Final = 1
# Has flags, takes flushes, takes writes that are durable when they are answered.
_FLAGS: Final = 1 | 4 | 8
_SECTOR_BYTES: Final = 512
_INVALID: Final = 22


@dataclass(frozen=True, slots=True)
class Write:
    """`at_s` is when it came, by the monotonic clock."""

    at_s: float
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Flush:
    """All writes before it are durable."""

    at_s: float


class VolatileDisk:
    """Serves one guest over a Unix socket until `close`. `base` is what the disk holds at first,
    and stays as it is.
    """

    def __init__(self, base: bytes, address: Path) -> None:
        self.log: list[Write | Flush] = []
        self._base = base
        self._content = bytearray(base)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(address))
        self._listener.listen(1)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """After the guest was killed: waits until its last request is in the log."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def content(self) -> bytes:
        """All that was written, as if nothing were lost."""
        return bytes(self._content)

    def after_cut(self, end: int, chosen: random.Random) -> bytes:
        """The disk if the power is cut after the first `end` entries of the log: all that was
        flushed, and of the rest what the cache had written back by chance, one of it torn.
        """
        flushed = max(
            (place for place in range(end) if isinstance(self.log[place], Flush)), default=0
        )
        disk = bytearray(self._base)
        for entry in self.log[:flushed]:
            if isinstance(entry, Write):
                _apply(disk, entry.offset, entry.data)
        kept = chosen.random()
        for entry in self.log[flushed:end]:
            if isinstance(entry, Write) and chosen.random() < kept:
                whole = len(entry.data) // _SECTOR_BYTES
                sectors = chosen.randint(1, whole) if chosen.random() < 0.2 and whole else whole
                _apply(disk, entry.offset, entry.data[: sectors * _SECTOR_BYTES])
        return bytes(disk)

    def _serve(self) -> None:
        try:
            guest, _ = self._listener.accept()
        except OSError:
            return
        with guest, guest.makefile("rb") as received:
            try:
                if _handshake(guest, received, len(self._content)):
                    while self._answer(guest, received):
                        pass
            except (EOFError, OSError):
                return  # killed in the middle of a request, as it should be

    def _answer(self, guest: socket.socket, received: object) -> bool:
        magic, flags, kind, cookie, offset, length = struct.unpack(
            ">IHHQQI", _exactly(received, 28)
        )
        if magic != _REQUEST or kind == _DISCONNECT:
            return False
        data, error = b"", 0
        if kind == _WRITE:
            written = _exactly(received, length)
            _apply(self._content, offset, written)
            self.log.append(Write(time.monotonic(), offset, written))
            if flags & _FORCE_UNIT_ACCESS:
                self.log.append(Flush(time.monotonic()))
        elif kind == _READ:
            data = bytes(self._content[offset : offset + length])
        elif kind == _FLUSH:
            self.log.append(Flush(time.monotonic()))
        else:
            error = _INVALID
        guest.sendall(struct.pack(">IIQ", _REPLY, error, cookie) + data)
        return True


def _apply(disk: bytearray, offset: int, data: bytes) -> None:
    disk[offset : offset + len(data)] = data


def _exactly(received: object, count: int) -> bytes:
    data: bytes = received.read(count)  # type: ignore[attr-defined]
    if len(data) != count:
        raise EOFError
    return data


def _handshake(guest: socket.socket, received: object, size: int) -> bool:
    """True when the guest has chosen the only disk there is."""
    guest.sendall(_MAGIC + _OPTION_MAGIC + struct.pack(">H", 1 | 2))
    _exactly(received, 4)
    while True:
        magic, option, length = struct.unpack(">8sII", _exactly(received, 16))
        _exactly(received, length)
        if magic != _OPTION_MAGIC or option == _ABORT:
            return False
        if option == _EXPORT_NAME:
            guest.sendall(struct.pack(">QH", size, _FLAGS))
            return True
        if option in (_INFO, _GO):
            _reply(guest, option, _INFORMATION, struct.pack(">HQH", 0, size, _FLAGS))
            _reply(guest, option, _ACKNOWLEDGED, b"")
            if option == _GO:
                return True
        else:
            _reply(guest, option, _UNSUPPORTED, b"")


def _reply(guest: socket.socket, option: int, kind: int, data: bytes) -> None:
    guest.sendall(struct.pack(">QIII", _OPTION_REPLY, option, kind, len(data)) + data)
