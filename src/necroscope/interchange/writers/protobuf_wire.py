"""The few parts of protobuf's wire format that a writer needs
(https://protobuf.dev/programming-guides/encoding).

Written by us because the generated classes of pprof's schema are in no maintained package and these
lines need no dependency.
"""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_MOST_GROUPS: Final = 10
_VARINT: Final = 0
_LENGTH_DELIMITED: Final = 2
_SMALL: Final = [bytes([number]) for number in range(128)]


def varint(number: int) -> bytes:
    """Negative numbers as their 64-bit two's complement, as int64 asks."""
    if 0 <= number < 128:
        return _SMALL[number]
    number &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def varints(numbers: NDArray[Any]) -> list[bytes]:
    """Of many numbers at once: for the times of a window the loop above takes longer than all the
    rest.
    """
    whole = numbers.astype(np.int64).view(np.uint64)[:, None]
    shifts = np.arange(0, 7 * _MOST_GROUPS, 7, dtype=np.uint64)
    groups = (whole >> shifts & np.uint64(127)).astype(np.uint8)
    lengths = 1 + (whole >> shifts[1:] != 0).sum(axis=1)
    groups |= np.where(np.arange(_MOST_GROUPS) < lengths[:, None] - 1, np.uint8(128), np.uint8(0))
    content = groups.tobytes()
    starts = range(0, len(content), _MOST_GROUPS)
    return [
        content[start : start + length]
        for start, length in zip(starts, lengths.tolist(), strict=True)
    ]


def number_field(field: int, number: int) -> bytes:
    """Nothing for 0, which is what a reader takes an absent field for."""
    return varint(field << 3 | _VARINT) + varint(number) if number else b""


def bytes_field(field: int, content: bytes) -> bytes:
    return varint(field << 3 | _LENGTH_DELIMITED) + varint(len(content)) + content


def packed_field(field: int, numbers: Iterable[int]) -> bytes:
    return bytes_field(field, b"".join(map(varint, numbers)))
