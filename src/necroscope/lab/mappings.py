"""Memory mappings of one process by the ten thousand: every other page protected, so that the
kernel merges none.
"""

import ctypes
import mmap
from collections.abc import Iterator
from typing import Final

from necroscope.lab.state_walk import growing

_PAGE_BYTES: Final = mmap.PAGESIZE
_READ_ONLY: Final = 1
_MOST: Final = 200_000
_libc: Final = ctypes.CDLL(None, use_errno=True)


def map_more(numbers: Iterator[int]) -> Iterator[int]:
    """Each number that comes is one mapping more; it is given on when that is there."""
    area = mmap.mmap(-1, _MOST * _PAGE_BYTES)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    for number in numbers:
        if number % 2 == 0:
            place = ctypes.c_void_p(start + number * _PAGE_BYTES)
            if _libc.mprotect(place, _PAGE_BYTES, _READ_ONLY):
                raise OSError(ctypes.get_errno(), "cannot map more")
        yield number


def keep_mappings(first: int, more_per_s: float, directory: str) -> None:
    for _ in map_more(growing(first, more_per_s, directory)):
        pass
