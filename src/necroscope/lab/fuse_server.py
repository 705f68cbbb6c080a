"""A FUSE file system of one endless file, whose server can stop answering reads: the kernel's
protocol (linux/fuse.h), spoken directly.

Its mount is safe: who waits for it can be killed, and all that wait are freed when the server is
gone.
"""

import ctypes
import errno
import os
import select
import signal
import struct
from collections import deque
from contextlib import suppress
from enum import IntEnum
from types import FrameType
from typing import Final

# len, opcode, unique, nodeid (and uid, gid, pid)
_REQUEST: Final = struct.Struct("<IIQQ16x")
_ANSWER: Final = struct.Struct("<IiQ")
# fuse_init_out: major, minor, max_readahead, flags, max_background, congestion_threshold,
# max_write, time_gran, max_pages
_INIT: Final = struct.Struct("<IIIIHHIIH34x")
# fuse_attr: ino, size, (blocks, times), mode, nlink, (uid, gid, rdev), blksize, (flags)
_ATTRIBUTES: Final = struct.Struct("<QQ44xII12xI4x")
_ENTRY: Final = struct.Struct("<QQQQII")
_ATTRIBUTES_VALID: Final = struct.Struct("<QII")
_OPENED: Final = struct.Struct("<QII")
_READ: Final = struct.Struct("<QQI")
# fuse_kstatfs: blocks, bfree, bavail, files, ffree, bsize, namelen, frsize
_STATFS: Final = struct.Struct("<QQQQQIII28x")
_ASYNC_READ: Final = 1
_MOST_READ_BYTES: Final = 128 << 10
_FILE_BYTES: Final = 1 << 40
_VALID_S: Final = 3600
_ROOT: Final = 1
_FILE: Final = 2
_MS_NOSUID_NODEV: Final = 0x2 | 0x4


class _Opcode(IntEnum):
    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    OPEN = 14
    READ = 15
    STATFS = 17
    RELEASE = 18
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    INTERRUPT = 36
    BATCH_FORGET = 42


_NO_ANSWER: Final = (_Opcode.FORGET, _Opcode.BATCH_FORGET, _Opcode.INTERRUPT)


class _Server:
    def __init__(self, device: int) -> None:
        self._device = device
        self._is_hung = False
        self._waiting: deque[tuple[int, int]] = deque()

    def hang(self, _number: int, _frame: FrameType | None) -> None:
        self._is_hung = True

    def resume(self, _number: int, _frame: FrameType | None) -> None:
        self._is_hung = False

    def serve(self) -> None:
        while True:
            if not self._is_hung and self._waiting:
                unique, size_bytes = self._waiting.popleft()
                self._answer(unique, bytes(size_bytes))
            elif select.select([self._device], [], [], 0.05)[0]:
                self._take(os.read(self._device, 1 << 20))

    def _take(self, request: bytes) -> None:
        _, opcode, unique, node = _REQUEST.unpack_from(request)
        if opcode == _Opcode.READ:
            self._waiting.append((unique, _READ.unpack_from(request, _REQUEST.size)[2]))
        elif opcode not in _NO_ANSWER:
            content = content_of(opcode, node)
            self._answer(unique, content or b"", 0 if content is not None else errno.ENOSYS)

    def _answer(self, unique: int, content: bytes, error: int = 0) -> None:
        with suppress(FileNotFoundError):  # who asked has been killed
            os.write(
                self._device, _ANSWER.pack(_ANSWER.size + len(content), -error, unique) + content
            )


def content_of(opcode: int, node: int) -> bytes | None:
    """None: the kernel has to do without."""
    match opcode:
        case _Opcode.INIT:
            return _INIT.pack(7, 31, _MOST_READ_BYTES, _ASYNC_READ, 64, 48, 4096, 1, 32)
        case _Opcode.LOOKUP:
            return _ENTRY.pack(_FILE, 0, _VALID_S, _VALID_S, 0, 0) + _attributes(_FILE)
        case _Opcode.GETATTR:
            return _ATTRIBUTES_VALID.pack(_VALID_S, 0, 0) + _attributes(node)
        case _Opcode.OPEN | _Opcode.OPENDIR:
            return _OPENED.pack(0, 0, 0)
        case _Opcode.STATFS:
            return _STATFS.pack(1 << 28, 1 << 27, 1 << 27, 1, 1, 4096, 255, 4096)
        case _Opcode.READDIR | _Opcode.RELEASE | _Opcode.RELEASEDIR | _Opcode.FLUSH:
            return b""
    return None


def _attributes(node: int) -> bytes:
    if node == _ROOT:
        return _ATTRIBUTES.pack(_ROOT, 0, 0o040755, 2, 4096)
    return _ATTRIBUTES.pack(_FILE, _FILE_BYTES, 0o100644, 1, 4096)


def serve(source: str, path: str) -> None:
    """A process: mounts at the path and serves it; SIGUSR1 makes it leave reads unanswered, SIGUSR2
    answer them again.
    """
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), os.fsencode(path), b"fuse", _MS_NOSUID_NODEV, options.encode()):
        raise OSError(ctypes.get_errno(), "cannot mount a FUSE file system")
    server = _Server(device)
    signal.signal(signal.SIGUSR1, server.hang)
    signal.signal(signal.SIGUSR2, server.resume)
    server.serve()
