"""Kernel symbols, with modules and BPF programs, from /proc/kallsyms: read by the native library,
asked by block.
"""

import ctypes
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.profile.library import load as load_library
from necroscope.symbols.messages import BLOCK_BITS, FunctionBlock

KERNEL_MODULE: Final = "[kernel]"
_BLOCK_BYTES: Final = 1 << BLOCK_BITS
# Names of one block: the kernel's static calls are 2,000 in one.
_NAMES_BYTES: Final = 1 << 18
_HINT: Final = (
    "give the process CAP_SYSLOG and set kernel.kptr_restrict to 0 or 1 (2 hides the addresses from"
    " every user): sudo sysctl kernel.kptr_restrict=1"
)


class KernelSymbols:
    """The functions of a kallsyms text; lines of another form are left out."""

    def __init__(self, descriptor: int) -> None:
        """Reads the file to its end, or raises OSError."""
        self._library = load_library()
        self._handle = self._library.kallsyms_new()
        if not self._handle:
            raise NecroscopeError("no memory for the kernel's symbols")
        self._starts, self._ends = (
            (ctypes.c_uint16 * _BLOCK_BYTES)(),
            (ctypes.c_uint32 * _BLOCK_BYTES)(),
        )
        self._names = ctypes.create_string_buffer(_NAMES_BYTES)
        if error := self._library.kallsyms_read(self._handle, descriptor):
            raise OSError(error, os.strerror(error))
        self._functions = int(self._library.kallsyms_finish(self._handle))
        if self._functions < 0:
            raise SourceUnavailable(
                "kernel symbols are hidden: every address in /proc/kallsyms is 0", _HINT
            )
        self.core_text = self._core_text()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.kallsyms_free(self._handle)

    def __len__(self) -> int:
        """How many functions there are."""
        return self._functions

    def block(self, number: int) -> FunctionBlock:
        """The functions of a block of addresses: name and, behind a tab, its module."""
        low = number << BLOCK_BITS
        count = self._library.kallsyms_block(
            self._handle, low, self._starts, self._ends, self._names, _NAMES_BYTES
        )
        starts, ends = (
            ctypes.string_at(self._starts, 2 * count),
            ctypes.string_at(self._ends, 4 * count),
        )
        return FunctionBlock(starts, ends, ctypes.string_at(self._names, self._ends[count - 1]))

    def address_of(self, name: str) -> int | None:
        """Where a function of the kernel itself begins."""
        return next((start for start, _, _ in self._find(name)), None)

    def ranges(self, names: Iterable[str]) -> list[tuple[int, int]]:
        """From where to where functions of the kernel itself with these names lie, in order."""
        return sorted(
            (start, end) for name in names for start, end, is_shown in self._find(name) if is_shown
        )

    def _find(self, name: str) -> Iterator[tuple[int, int, bool]]:
        place, end, is_shown = ctypes.c_uint32(), ctypes.c_uint64(), ctypes.c_uint32()
        found = tuple(map(ctypes.byref, (place, end, is_shown)))
        while start := int(
            self._library.kallsyms_find(self._handle, name.encode("utf-8", "replace"), *found)
        ):
            yield start, end.value, bool(is_shown.value)

    def _core_text(self) -> tuple[int, int]:
        """From the kernel's first function to behind its last: what lies outside can come and go.
        (0, 0) if it is not known.
        """
        start, end = self.address_of("_stext"), self.address_of("_etext")
        return (start, end) if start and end else (0, 0)


def read_file(path: Path) -> KernelSymbols:
    """Also where it holds no function; OSError if it cannot be read."""
    with path.open("rb", buffering=0) as file:
        return KernelSymbols(file.fileno())


def read(path: Path) -> KernelSymbols:
    """SourceUnavailable says why there are none, and the way out."""
    try:
        symbols = read_file(path)
    except OSError as error:
        raise SourceUnavailable(f"cannot read {path}: {error.strerror}", _HINT) from None
    if not len(symbols):
        raise SourceUnavailable(
            f"{path} holds no function", "the kernel was built without CONFIG_KALLSYMS"
        )
    return symbols
