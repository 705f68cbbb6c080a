"""The bpf system call: per-core maps and tracepoint programs, held by descriptor only, so that nothing outlives this process."""

import ctypes
import errno
import os
import resource
import struct
from fcntl import ioctl
from typing import Final

from necroscope.errors import PermissionMissing, SourceUnavailable
from necroscope.perf_abi import event_attr as abi
from necroscope.perf_abi.syscalls import syscall
from necroscope.sources.perf.event import enable, open_event

_MAP_CREATE: Final = 0
_MAP_LOOKUP_ELEM: Final = 1
_MAP_UPDATE_ELEM: Final = 2
_PROG_LOAD: Final = 5
_MAP_TYPE_PERCPU_ARRAY: Final = 6
_PROG_TYPE_TRACEPOINT: Final = 5
_NAME: Final = b"necroscope"


class PerCpuValue:
    """A map with one value for each possible core, read and written whole in one call."""

    def __init__(self, size_bytes: int, possible_cpus: int) -> None:
        self.size_bytes = size_bytes
        self._buffer = ctypes.create_string_buffer(size_bytes * possible_cpus)
        self._key = ctypes.create_string_buffer(4)
        attr = struct.pack("<IIIII", _MAP_TYPE_PERCPU_ARRAY, 4, size_bytes, 1, 0)
        self.descriptor = _bpf(_MAP_CREATE, attr)
        self._element = struct.pack("<IIQQQ", self.descriptor, 0, ctypes.addressof(self._key), ctypes.addressof(self._buffer), 0)

    def read(self) -> bytes:
        _bpf(_MAP_LOOKUP_ELEM, self._element)
        return self._buffer.raw

    def clear(self) -> None:
        ctypes.memset(self._buffer, 0, len(self._buffer))
        _bpf(_MAP_UPDATE_ELEM, self._element)

    def close(self) -> None:
        os.close(self.descriptor)


class TracepointProgram:
    """A program that runs at a tracepoint on every core until it is closed."""

    def __init__(self, code: bytes, tracepoint_id: int) -> None:
        self._program = _load(code)
        try:
            # The program hangs on the tracepoint, not on this one core's event.
            self._event = open_event(abi.EventAttr(abi.TYPE_TRACEPOINT, tracepoint_id, 0, abi.FLAG_DISABLED), cpu=0)
        except BaseException:
            os.close(self._program)
            raise
        try:
            ioctl(self._event, abi.IOC_SET_BPF, self._program)
            enable(self._event)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        os.close(self._event)
        os.close(self._program)


def allow_locked_memory() -> None:
    """Kernels before 5.11 charge maps to RLIMIT_MEMLOCK; raise it as far as we may."""
    _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    for limit in (resource.RLIM_INFINITY, hard):
        try:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
        except (ValueError, OSError):
            continue
        return


def _load(code: bytes) -> int:
    instructions = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"GPL")
    head = struct.pack(
        "<IIQQIIQII",
        *(_PROG_TYPE_TRACEPOINT, len(code) // 8, ctypes.addressof(instructions), ctypes.addressof(licence), 0, 0, 0, 0, 0),
    )
    try:
        return _bpf(_PROG_LOAD, head + _NAME.ljust(16, b"\0"))
    except OSError as error:
        if error.errno != errno.E2BIG:  # before 4.15 programs had no name
            raise
    return _bpf(_PROG_LOAD, head)


def _bpf(command: int, attr: bytes) -> int:
    buffer = ctypes.create_string_buffer(attr, len(attr))
    try:
        return syscall("bpf", command, buffer, len(attr))
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            raise PermissionMissing(
                "cannot use BPF: CAP_BPF is missing", "give CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8)"
            ) from None
        if error.errno == errno.ENOSYS:
            raise SourceUnavailable("this kernel has no bpf system call", "it needs CONFIG_BPF_SYSCALL") from None
        raise
