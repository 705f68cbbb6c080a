"""System calls that Python has no function for, by name, on x86_64 and aarch64.

Numbers from arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
"""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False  # `typing` would take 2 MB of the broker, which lives as long as the recorder
if TYPE_CHECKING:
    from typing import Final

_NUMBERS: Final = {
    "x86_64": {"perf_event_open": 298, "bpf": 321, "clone": 56, "add_key": 248, "keyctl": 250},
    "aarch64": {"perf_event_open": 241, "bpf": 280, "clone": 220, "add_key": 217, "keyctl": 219},
}
# Since 5.1 new calls have one number on all architectures.
_COMMON_NUMBERS: Final = {"fsopen": 430, "fsconfig": 431, "fsmount": 432, "openat2": 437}

_libc: Final = ctypes.CDLL(None, use_errno=True)
_machine: Final = os.uname().machine
_numbers: Final = _NUMBERS.get(_machine, {}) | _COMMON_NUMBERS


def syscall(name: str, *arguments: int | ctypes.Array[ctypes.c_char] | None) -> int:
    """Call it; an error is an OSError, a call this architecture has no number for is ENOSYS."""
    number = _numbers.get(name)
    if number is None:
        raise OSError(38, f"no number for system call {name} on {_machine}")
    converted = [
        ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments
    ]
    result = int(_libc.syscall(ctypes.c_long(number), *converted))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
