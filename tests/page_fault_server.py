"""A process that stands in a page fault until another answers it, by userfaultfd(2)."""

import ctypes
import fcntl
import mmap
import os
import platform
import socket
import struct
import time

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_USERFAULTFD = {"x86_64": 323, "aarch64": 282}[platform.machine()]
# linux/userfaultfd.h
_API, _REGISTER, _ZERO_PAGE = 0xC018AA3F, 0xC020AA00, 0xC020AA04
_VERSION, _MISSING = 0xAA, 1


def stand_in_a_page_fault(seconds: float) -> int:
    """Its pid, when it is over."""
    ours, theirs = socket.socketpair()
    waiter = os.fork()
    if waiter == 0:
        _touch(theirs)
        os._exit(0)
    _, (faults,), *_ = socket.recv_fds(ours, 8, 1)
    message = os.read(faults, 32)
    (address,) = struct.unpack_from("<Q", message, 16)
    time.sleep(seconds)
    fcntl.ioctl(faults, _ZERO_PAGE, struct.pack("<QQQq", address & -4096, 4096, 0, 0))
    os.waitpid(waiter, 0)
    for part in (ours, theirs):
        part.close()
    os.close(faults)
    return waiter


def _touch(to: socket.socket) -> None:
    faults = _LIBC.syscall(_USERFAULTFD, os.O_CLOEXEC)
    fcntl.ioctl(faults, _API, struct.pack("<QQQ", _VERSION, 0, 0))
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = _LIBC.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    fcntl.ioctl(faults, _REGISTER, struct.pack("<QQQQ", address, 4096, _MISSING, 0))
    socket.send_fds(to, [b"x"], [faults])
    ctypes.c_char.from_address(address).value  # noqa: B018 - the fault itself
