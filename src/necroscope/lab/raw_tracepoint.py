"""A BPF program at a raw tracepoint, with a name of its choice: what a tracing agent loads
(linux/bpf.h).

It hangs on the link's descriptor, so that it is gone with the process that opened it.
"""

import ctypes
import struct
from typing import Final

from necroscope.perf_abi.syscalls import syscall

_MAP_CREATE: Final = 0
_PROG_LOAD: Final = 5
_RAW_TRACEPOINT_OPEN: Final = 17
_MAP_TYPE_HASH: Final = 1
_PROG_TYPE_RAW_TRACEPOINT: Final = 17


def make_hash_map(key_bytes: int, value_bytes: int, entries: int) -> int:
    return _bpf(
        _MAP_CREATE, struct.pack("<IIIII", _MAP_TYPE_HASH, key_bytes, value_bytes, entries, 0)
    )


def attach(code: bytes, program_name: str, tracepoint: str) -> int:
    """The link's descriptor. The name (at most 15 characters) is what the kernel's symbols show:
    bpf_prog_TAG_NAME.
    """
    instructions = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"GPL")
    addresses = ctypes.addressof(instructions), ctypes.addressof(licence)
    attr = struct.pack(
        "<IIQQIIQII", _PROG_TYPE_RAW_TRACEPOINT, len(code) // 8, *addresses, 0, 0, 0, 0, 0
    )
    program = _bpf(_PROG_LOAD, attr + program_name.encode().ljust(16, b"\0"))
    name = ctypes.create_string_buffer(tracepoint.encode())
    return _bpf(_RAW_TRACEPOINT_OPEN, struct.pack("<QI4x", ctypes.addressof(name), program))


def _bpf(command: int, attr: bytes) -> int:
    return syscall("bpf", command, ctypes.create_string_buffer(attr, len(attr)), len(attr))
