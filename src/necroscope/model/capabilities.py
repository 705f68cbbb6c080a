"""Capabilities of the calling thread (capabilities(7)), and how it gives some up for good."""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False  # `typing` would take 2 MB of the broker, which lives as long as the recorder
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

# include/uapi/linux/capability.h
DAC_OVERRIDE: Final = 1
DAC_READ_SEARCH: Final = 2
SYS_CHROOT: Final = 18
SYS_PTRACE: Final = 19
SYS_ADMIN: Final = 21
CHECKPOINT_RESTORE: Final = 40

_VERSION_3: Final = 0x20080522
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_EFFECTIVE, _PERMITTED, _INHERITABLE = range(3)


def held() -> frozenset[int]:
    """Those that it may use: its permitted set."""
    permitted = _get()[_PERMITTED]
    return frozenset(number for number in range(64) if permitted >> number & 1)


def keep(wanted: Iterable[int]) -> None:
    """Gives up all others for good: no program that is started later has them, also as root.
    OSError if the kernel refuses that. Threads that were started before keep theirs.
    """
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    mask = sum(1 << number for number in set(wanted))
    _set([capabilities & mask for capabilities in _get()])


def hand_on() -> None:
    """Programs that are started from now on have what this thread has, whatever its user."""
    effective, permitted, _ = _get()
    _set([effective, permitted, permitted])
    for number in held():
        _call("prctl", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, number, 0, 0)


def _get() -> list[int]:
    """The effective, permitted and inheritable set, as bits."""
    data = (ctypes.c_uint32 * 6)()
    _call("capget", _header(), data)
    return [data[kind] | data[kind + 3] << 32 for kind in range(3)]


def _set(sets: list[int]) -> None:
    words = [kind >> shift & 0xFFFFFFFF for shift in (0, 32) for kind in sets]
    _call("capset", _header(), (ctypes.c_uint32 * 6)(*words))


def _header() -> ctypes.Array[ctypes.c_uint32]:
    return (ctypes.c_uint32 * 2)(_VERSION_3, 0)


def _call(name: str, *arguments: int | ctypes.Array[ctypes.c_uint32]) -> None:
    # Loaded here: this module is imported where there is no such library, too.
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    converted = [
        ctypes.c_ulong(argument) if isinstance(argument, int) else argument
        for argument in arguments
    ]
    if function(*converted) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
