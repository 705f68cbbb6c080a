"""The bpf system call: maps of one value and programs at tracepoints and perf events.

All are held by descriptor, so that nothing outlives this process.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import resource
import struct
from collections.abc import Mapping
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
_PROG_GET_NEXT_ID: Final = 11
_MAP_GET_NEXT_ID: Final = 12
_PROG_GET_FD_BY_ID: Final = 13
_OBJ_GET_INFO_BY_FD: Final = 15
_RAW_TRACEPOINT_OPEN: Final = 17
_LINK_CREATE: Final = 28
_ITER_CREATE: Final = 33
_MAP_TYPE_ARRAY: Final = 2
_MAP_TYPE_PERCPU_ARRAY: Final = 6
_MAP_MAPPABLE: Final = 1 << 10
PROG_TYPE_KPROBE: Final = 2
PROG_TYPE_TRACEPOINT: Final = 5
_PROG_TYPE_PERF_EVENT: Final = 7
_PROG_TYPE_RAW_TRACEPOINT: Final = 17
_PROG_TYPE_TRACING: Final = 26
_TRACE_RAW_TRACEPOINT: Final = 23
_TRACE_ITERATOR: Final = 28
_PERF_EVENT: Final = 41
_NAME: Final = b"necroscope"


class MapValue:
    """The one value of a map, read and written whole: by default one for all, that a program may
    address directly.

    Since 5.5 it is memory shared with the kernel, and reading it takes no call.
    """

    _type = _MAP_TYPE_ARRAY
    _flags = _MAP_MAPPABLE

    def __init__(self, size_bytes: int, copies: int = 1) -> None:
        self._buffer = ctypes.create_string_buffer(size_bytes * copies)
        self._key = ctypes.create_string_buffer(4)
        self._memory: mmap.mmap | None = None
        self.descriptor = self._create(size_bytes)
        self._element = struct.pack(
            "<IIQQQ",
            self.descriptor,
            0,
            ctypes.addressof(self._key),
            ctypes.addressof(self._buffer),
            0,
        )

    def read(self) -> bytes:
        if self._memory is not None:
            return self._memory[:]
        _bpf(_MAP_LOOKUP_ELEM, self._element)
        return self._buffer.raw

    def clear(self) -> None:
        if self._memory is not None:
            self._memory[:] = bytes(len(self._memory))
            return
        ctypes.memset(self._buffer, 0, len(self._buffer))
        _bpf(_MAP_UPDATE_ELEM, self._element)

    def write_word(self, offset: int, number: int) -> None:
        """One word of shared memory (Linux 5.5)."""
        assert self._memory is not None
        struct.pack_into("<Q", self._memory, offset, number)

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
        os.close(self.descriptor)

    def _create(self, size_bytes: int) -> int:
        plain = struct.pack("<IIII", self._type, 4, size_bytes, 1)
        if self._flags:
            with contextlib.suppress(OSError):  # before 5.5 the flag is not known
                descriptor = _bpf(_MAP_CREATE, plain + struct.pack("<I", self._flags))
                with contextlib.suppress(OSError):
                    self._memory = mmap.mmap(descriptor, size_bytes)
                return descriptor
        return _bpf(_MAP_CREATE, plain + bytes(4))


class PerCpuValue(MapValue):
    """As many copies of the value as there are possible cores; a program sees that of its own
    core.
    """

    _type = _MAP_TYPE_PERCPU_ARRAY
    _flags = 0


class TracepointProgram:
    """A program that runs at a tracepoint on every core until it is closed, behind the buffer that
    perf fills for it.
    """

    def __init__(self, code: bytes, tracepoint_id: int) -> None:
        self._program = _load(PROG_TYPE_TRACEPOINT, code)
        try:
            # The program hangs on the tracepoint, not on this one core's event.
            self._event = open_event(
                abi.EventAttr(abi.TYPE_TRACEPOINT, tracepoint_id, 0, abi.FLAG_DISABLED), cpu=0
            )
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


class RawTracepointProgram:
    """The same without perf: the program is called with the tracepoint's own arguments (Linux
    4.17). Needs no tracefs.
    """

    def __init__(self, code: bytes, tracepoint: str) -> None:
        self.program = _load(_PROG_TYPE_RAW_TRACEPOINT, code)
        name = ctypes.create_string_buffer(tracepoint.encode())
        try:
            self._link = _bpf(
                _RAW_TRACEPOINT_OPEN, struct.pack("<QII", ctypes.addressof(name), self.program, 0)
            )
        except BaseException:
            os.close(self.program)
            raise

    def close(self) -> None:
        os.close(self._link)
        os.close(self.program)


class TypedTracepointProgram:
    """The same again, whose arguments are pointers that the kernel's BTF gives a type: the program
    reads members without a call (Linux 5.5).
    """

    def __init__(self, code: bytes, type_id: int) -> None:
        self._program = _load(_PROG_TYPE_TRACING, code, (_TRACE_RAW_TRACEPOINT, type_id))
        self._link: int | None = None

    def attach(self) -> None:
        self._link = _bpf(_RAW_TRACEPOINT_OPEN, struct.pack("<QII", 0, self._program, 0))

    def detach(self) -> None:
        """It stays loaded, and costs nothing."""
        if self._link is not None:
            os.close(self._link)
            self._link = None

    def close(self) -> None:
        self.detach()
        os.close(self._program)


class IteratorProgram:
    """A program that the kernel calls for each of its objects whenever `read` asks; what it writes
    is the answer (Linux 5.8).
    """

    def __init__(self, code: bytes, type_id: int) -> None:
        self._program = _load(_PROG_TYPE_TRACING, code, (_TRACE_ITERATOR, type_id))
        try:
            self._link = _bpf(
                _LINK_CREATE, struct.pack("<IIIIQI", self._program, 0, _TRACE_ITERATOR, 0, 0, 0)
            )
        except BaseException:
            os.close(self._program)
            raise

    def read(self, limit_bytes: int) -> bytes:
        """At most about this much: the walk ends where it is cut."""
        descriptor = _bpf(_ITER_CREATE, struct.pack("<II", self._link, 0))
        pieces: list[bytes] = []
        try:
            while sum(map(len, pieces)) < limit_bytes and (piece := os.read(descriptor, 1 << 16)):
                pieces.append(piece)
        finally:
            os.close(descriptor)
        return b"".join(pieces)

    def close(self) -> None:
        os.close(self._link)
        os.close(self._program)


class PerfEventProgram:
    """A program that decides about each sample of the perf events it is attached to: 0 drops it, 1
    has it written.

    By links (Linux 5.15), because nothing else takes a program off an event that goes on.
    """

    def __init__(self, code: bytes) -> None:
        self._program = _load(_PROG_TYPE_PERF_EVENT, code)
        self._links: dict[int, int] = {}

    def attach(self, descriptor: int) -> None:
        attr = struct.pack("<IIIIQI", self._program, descriptor, _PERF_EVENT, 0, 0, 0)
        self._links[descriptor] = _bpf(_LINK_CREATE, attr)

    def detach(self, descriptor: int) -> None:
        if (link := self._links.pop(descriptor, None)) is not None:
            os.close(link)

    def close(self) -> None:
        for descriptor in list(self._links):
            self.detach(descriptor)
        os.close(self._program)


def program_types(known: Mapping[int, int]) -> dict[int, int]:
    """The types of all programs that are loaded, by their ids; of `known` ones none is opened."""
    types: dict[int, int] = {}
    number = 0
    while number := _next_id(_PROG_GET_NEXT_ID, number):
        found = known.get(number) or _program_type(number)
        if found is not None:
            types[number] = found
    return types


def count_maps() -> int:
    """How many maps are loaded, by whomever; none is opened."""
    count = number = 0
    try:
        while number := _next_id(_MAP_GET_NEXT_ID, number):
            count += 1
    except PermissionMissing:
        # To list the maps of others takes more than to load one's own (kernel/bpf/syscall.c).
        raise PermissionMissing(
            "cannot list BPF maps: CAP_SYS_ADMIN is missing", "give CAP_SYS_ADMIN"
        ) from None
    return count


def _next_id(command: int, number: int) -> int:
    """Programs and maps are counted from 1; behind the last one comes 0."""
    attr = ctypes.create_string_buffer(struct.pack("<III", number, 0, 0), 12)
    try:
        _bpf_in(command, attr)
    except FileNotFoundError:
        return 0
    return int(struct.unpack_from("<I", attr, 4)[0])


def _program_type(number: int) -> int | None:
    """None if it was unloaded meanwhile."""
    try:
        descriptor = _bpf(_PROG_GET_FD_BY_ID, struct.pack("<III", number, 0, 0))
    except FileNotFoundError:
        return None
    info = ctypes.create_string_buffer(8)  # struct bpf_prog_info begins with its type
    try:
        _bpf(_OBJ_GET_INFO_BY_FD, struct.pack("<IIQ", descriptor, 8, ctypes.addressof(info)))
    finally:
        os.close(descriptor)
    return int(struct.unpack_from("<I", info)[0])


def create_map(kind: int, key_bytes: int, value_bytes: int, entries: int) -> int:
    return _bpf(_MAP_CREATE, struct.pack("<IIIII", kind, key_bytes, value_bytes, entries, 0))


def allow_locked_memory() -> None:
    """Kernels before 5.11 charge maps to RLIMIT_MEMLOCK; raise it as far as we may."""
    _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    for limit in (resource.RLIM_INFINITY, hard):
        try:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
        except (ValueError, OSError):
            continue
        return


def _load(kind: int, code: bytes, attach: tuple[int, int] | None = None) -> int:
    """`attach` is the kind and the BTF id of what a typed program is attached to."""
    instructions = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"GPL")
    head = struct.pack(
        "<IIQQIIQII",
        *(
            kind,
            len(code) // 8,
            ctypes.addressof(instructions),
            ctypes.addressof(licence),
            0,
            0,
            0,
            0,
            0,
        ),
    )
    named = head + _NAME.ljust(16, b"\0")
    if attach is not None:
        return _bpf(_PROG_LOAD, named + struct.pack("<II36xII", 0, *attach, 0))
    try:
        return _bpf(_PROG_LOAD, named)
    except OSError as error:
        if error.errno != errno.E2BIG:  # before 4.15 programs had no name
            raise
    return _bpf(_PROG_LOAD, head)


def _bpf(command: int, attr: bytes) -> int:
    return _bpf_in(command, ctypes.create_string_buffer(attr, len(attr)))


def _bpf_in(command: int, attr: "ctypes.Array[ctypes.c_char]") -> int:
    """As `_bpf`, for commands that answer in their attributes."""
    try:
        return syscall("bpf", command, attr, len(attr))
    except OSError as error:
        # The verifier answers EACCES too, to a program that it does not accept.
        if error.errno == errno.EPERM or (error.errno == errno.EACCES and command != _PROG_LOAD):
            raise PermissionMissing(
                "cannot use BPF: CAP_BPF is missing",
                "give CAP_BPF and CAP_PERFMON (before Linux 5.8 CAP_SYS_ADMIN, before 5.11 also"
                " CAP_SYS_RESOURCE or ulimit -l)",
            ) from None
        if error.errno == errno.ENOSYS:
            raise SourceUnavailable(
                "this kernel has no bpf system call", "it needs CONFIG_BPF_SYSCALL"
            ) from None
        raise
