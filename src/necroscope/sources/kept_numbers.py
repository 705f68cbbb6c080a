"""The numbers of a kernel file that is read every second, and by how much each rose: by the native
library (core/numbers.c), without a Python object for each word.

Where that cannot say, a source parses the text: at the first read, when words stand elsewhere than
before (a core was plugged in), and where there is no library.
"""

from collections.abc import Sequence
from ctypes import (
    Structure,
    addressof,
    byref,
    c_char,
    c_char_p,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import cache
from struct import Struct
from typing import Any

from necroscope import native
from necroscope.errors import SourceUnavailable
from necroscope.sources.kept_file import KeptFile


class _Numbers(Structure):
    """`struct numbers` of core/numbers.c."""

    _fields_ = (
        *((name, c_void_p) for name in ("places", "values", "rises")),
        ("shape", c_uint64),
        *((name, c_uint32) for name in ("count", "base", "longest_bytes")),
        ("file", c_int32),
        ("end", c_char * 8),
    )


@cache
def _library() -> Any:
    """None where there is none: then all is parsed here."""
    text = (c_void_p, c_char_p, c_uint64)
    try:
        return native.load(
            {
                "numbers_read": (c_int32, (c_void_p,)),
                "numbers_learn": (c_int32, text),
                "numbers_compare": (c_int32, text),
            }
        )
    except SourceUnavailable:
        return None


class KeptNumbers:
    """Those of `file` at the places that were learnt, in their order."""

    __slots__ = ("_arrays", "_file", "_is_known", "_numbers", "_pointer", "_read", "_unpack")

    def __init__(
        self, file: KeptFile, *, base: int = 10, longest_record_bytes: int = 0, end: bytes = b""
    ) -> None:
        """`longest_record_bytes` as in `KeptFile.read`, 0 of a file that is a single record. What
        comes from the word `end` on is not looked at.
        """
        self._file = file
        self._numbers = _Numbers(base=base, longest_bytes=longest_record_bytes, end=end)
        self._pointer = c_void_p(addressof(self._numbers))
        self._arrays: tuple[Any, ...] = ()
        self._unpack = Struct("").unpack
        self._read: Any = None
        self._is_known = False

    def take(self) -> bool:
        """Read again; False if the text is to be parsed and learnt."""
        if self._is_known and self._read(self._pointer) == 0:
            return True
        self._is_known = False
        return False

    @property
    def values(self) -> tuple[int, ...]:
        return self._unpack(self._arrays[1])

    @property
    def rises(self) -> tuple[int, ...]:
        """Since the read before; less than 0 where a counter fell."""
        return self._unpack(self._arrays[2])

    def learn(self, text: bytes, places: Sequence[int]) -> None:
        """These words of the file as it was read just now are taken from the next read on."""
        library = _library()
        if library is None or not places:
            return
        numbers, count = self._numbers, len(places)
        self._arrays = (c_uint32 * count)(*places), (c_int64 * count)(), (c_int64 * count)()
        numbers.places, numbers.values, numbers.rises = (addressof(one) for one in self._arrays)
        numbers.count, numbers.file = count, self._file.descriptor
        self._unpack = Struct(f"{count}q").unpack
        self._read = library.numbers_read
        self._is_known = library.numbers_learn(byref(numbers), text, len(text)) == 0
