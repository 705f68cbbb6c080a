"""glibc's allocator in a process that lives for weeks: what is freed goes back to the machine.

By default glibc raises its threshold for mmap with every large block that is freed, up to 32 MiB,
and the next such block stays in the heap for good, with holes around it.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Final

# malloc.h: their values are part of glibc's interface.
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8


def give_memory_back(threshold_bytes: int = 1 << 17, arenas: int = 1) -> None:
    """Blocks of this size and more come from mmap and go back at once. Another allocator than
    glibc's stays as it is.
    """
    if (mallopt := _of_glibc("mallopt")) is not None:
        mallopt(_M_MMAP_THRESHOLD, threshold_bytes)
        mallopt(_M_ARENA_MAX, arenas)


def trim_heap() -> None:
    """Pages in the holes between small blocks go back too: a millisecond, for rare moments."""
    if (malloc_trim := _of_glibc("malloc_trim")) is not None:
        malloc_trim(0)


def _of_glibc(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
