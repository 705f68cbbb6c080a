"""Kernel symbols, with modules and BPF programs, from /proc/kallsyms (kernel/kallsyms.c), `ADDRESS TYPE NAME[\\t[MODULE]]`."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from necroscope.errors import SourceUnavailable
from necroscope.symbols.demangle import demangle
from necroscope.symbols.table import ADDRESS_END, Addresses, SymbolTable

KernelSymbol = tuple[str, str]
Characters = npt.NDArray[np.uint8]

KERNEL_MODULE: Final = "[kernel]"
# `%px %c ` in front of each name on a 64-bit kernel.
_PREFIX: Final = 19
_DIGITS: Final = 16
_WINDOW: Final = _PREFIX + 2
# The last symbol of the kernel, of a module area or of the BPF area has no end in kallsyms; no function is longer than this.
_FUNCTION_LIMIT: Final = 1 << 20
_NO_FUNCTION: Final = 8
_READ_LIMIT: Final = 64 << 20
_HINT: Final = (
    "give the process CAP_SYSLOG and set kernel.kptr_restrict to 0 or 1 (2 hides the addresses from everybody): "
    "sudo sysctl kernel.kptr_restrict=1"
)

_NIBBLE: Final = np.full(256, 255, np.uint8)
for _digit in b"0123456789abcdefABCDEF":
    _NIBBLE[_digit] = int(chr(_digit), 16)
_IS_TEXT: Final = np.zeros(256, bool)
_IS_TEXT[list(b"tTwW")] = True


class KernelSymbols:
    """Text symbols by address; 16 bytes a symbol plus the names."""

    def __init__(self, table: SymbolTable, names: bytes) -> None:
        self._table = table
        self._names = names

    def __len__(self) -> int:
        return len(self._table)

    @property
    def size_bytes(self) -> int:
        return self._table.size_bytes + len(self._names)

    def lookup(self, addresses: Sequence[int]) -> list[KernelSymbol | None]:
        """Function and module of each address, None outside all symbols."""
        return [None if offset is None else self._name_at(offset) for offset in self._table.find(addresses)]

    def extents(self, addresses: Sequence[int]) -> list[tuple[int, int]]:
        """Ranges around addresses in which the answer is the same."""
        return self._table.extents(addresses)

    def _name_at(self, offset: int) -> KernelSymbol:
        line = self._names[offset : self._names.find(b"\n", offset)]
        name, _, module = line.partition(b"\t")
        return demangle(name), demangle(module) or KERNEL_MODULE


def parse(blocks: Iterable[bytes]) -> KernelSymbols:
    """All text symbols of /proc/kallsyms, given in blocks of whole lines; lines of another form are left out."""
    parsed = [_parse_block(block) for block in blocks]
    addresses = np.concatenate([block.addresses for block in parsed] or [np.zeros(0, np.uint64)])
    if len(addresses) and not addresses.any():
        raise SourceUnavailable("kernel symbols are hidden: every address in /proc/kallsyms is 0", _HINT)
    ranks = np.concatenate([block.ranks for block in parsed] or [np.zeros(0, np.uint8)])
    lengths = np.concatenate([block.name_lengths for block in parsed] or [np.zeros(0, np.uint32)])
    return KernelSymbols(_build(addresses, ranks, np.cumsum(lengths) - lengths), b"".join(block.names for block in parsed))


def load(root: Path) -> KernelSymbols:
    """The running kernel's symbols."""
    try:
        with (root / "proc/kallsyms").open("rb", buffering=0) as file:
            symbols = parse(_read_blocks(file.fileno()))
    except OSError as error:
        raise SourceUnavailable(f"cannot read /proc/kallsyms: {error.strerror}", _HINT) from None
    if not len(symbols):
        raise SourceUnavailable("/proc/kallsyms holds no function", "the kernel was built without CONFIG_KALLSYMS")
    return symbols


def _read_blocks(descriptor: int) -> Iterator[bytes]:
    """Whole lines, some 64 KiB at a time: what is parsed stays in the processor's cache and the peak of memory stays low."""
    rest = b""
    size_bytes = 0
    while size_bytes < _READ_LIMIT:
        # The kernel hands out less than a page a read, whatever is asked for.
        pieces = list(takewhile(bool, (os.read(descriptor, 1 << 16) for _ in range(16))))
        if not pieces:
            break
        block = b"".join((rest, *pieces))
        size_bytes += len(block) - len(rest)
        end = block.rfind(b"\n") + 1
        rest = block[end:]
        yield block[:end]


class _Block(NamedTuple):
    """Addresses and ranks of all lines; names and their lengths of the functions alone (rank below _NO_FUNCTION)."""

    addresses: Addresses
    ranks: npt.NDArray[np.uint8]
    name_lengths: npt.NDArray[np.uint32]
    names: bytes


def _parse_block(text: bytes) -> _Block:
    text = text[: text.rfind(b"\n") + 1]
    characters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(characters == ord("\n"))
    starts = np.append(np.int64(0), ends[:-1] + 1) if len(ends) else ends
    is_long = ends - starts > _PREFIX
    starts, ends = starts[is_long], ends[is_long]
    # Every window of the text that could be `ADDRESS TYPE NA`, without a copy; then those at line starts.
    windows = np.ndarray((max(len(text) - _WINDOW + 1, 0), _WINDOW), np.uint8, text, strides=(1, 1))
    heads = windows[starts]
    nibbles = _NIBBLE[heads[:, :_DIGITS]]
    is_number = nibbles.max(axis=1, initial=0) < 16
    is_line = is_number & (heads[:, _DIGITS] == ord(" ")) & (heads[:, _PREFIX - 1] == ord(" "))
    addresses = ((nibbles[:, 0::2] << 4) | nibbles[:, 1::2]).view(">u8").ravel()[is_line].astype(np.uint64)
    ranks = _rank(heads[is_line])
    is_function = ranks < _NO_FUNCTION
    starts, ends = starts[is_line][is_function] + _PREFIX, ends[is_line][is_function] + 1
    return _Block(addresses, ranks, (ends - starts).astype(np.uint32), _keep(characters, starts, ends))


def _rank(heads: Characters) -> npt.NDArray[np.uint8]:
    """Which of the symbols at one address is shown: not a weak one, one without underscores, a global one."""
    kinds, first, second = heads[:, _PREFIX - 2], heads[:, _PREFIX], heads[:, _PREFIX + 1]
    is_weak = (kinds == ord("w")) | (kinds == ord("W"))
    ranks = is_weak * np.uint8(4) + (first == ord("_")) * np.uint8(2) + (kinds == ord("t")) * np.uint8(1)
    # aarch64 mapping symbols ($x, $d) and local labels (.L) are no functions.
    is_label = (first == ord("$")) | ((first == ord(".")) & (second == ord("L")))
    return np.where(_IS_TEXT[kinds] & ~is_label, ranks, _NO_FUNCTION).astype(np.uint8)


def _keep(characters: Characters, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> bytes:
    """Only what lies between starts and ends."""
    edges = np.zeros(len(characters) + 1, np.int8)
    edges[starts] = 1
    edges[ends] = -1
    is_kept = np.cumsum(edges[:-1], dtype=np.int8).view(bool)
    return bytes(characters[is_kept])


def _build(addresses: Addresses, ranks: npt.NDArray[np.uint8], names: npt.NDArray[np.uint64]) -> SymbolTable:
    # A data symbol ends the function before it, although it is not kept.
    boundaries = np.append(np.sort(addresses), np.uint64(ADDRESS_END - 1))
    is_function = ranks < _NO_FUNCTION
    addresses = addresses[is_function]
    following = boundaries[np.searchsorted(boundaries, addresses, "right").clip(max=len(boundaries) - 1)]
    sizes = np.minimum(following - addresses, np.uint64(_FUNCTION_LIMIT))
    return SymbolTable(addresses, sizes, following, names.astype(np.uint32), ranks[is_function])
