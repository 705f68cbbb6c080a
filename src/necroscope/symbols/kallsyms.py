"""Kernel symbols, with modules and BPF programs, from /proc/kallsyms (kernel/kallsyms.c), `ADDRESS TYPE NAME[\\t[MODULE]]`.

Of a hundred thousand lines few are ever asked for. So the text is kept as it is, with the place of each line in the order of
addresses, and a line is taken apart when somebody asks for it.
"""

import ctypes
import os
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.symbols.symbol_names import plain

KernelSymbol = tuple[str, str]

KERNEL_MODULE: Final = "[kernel]"
# `%px %c ` in front of each name on a 64-bit kernel.
_DIGITS: Final = 16
_TYPE_AT: Final = 17
_PREFIX: Final = 19
_LINE: Final = re.compile(rb"[0-9a-f]{16} \S [^\n]+", re.IGNORECASE)
_TEXT_TYPES: Final = b"tTwW"
# The last symbol of the kernel, of a module area or of the BPF area has no end in kallsyms; no function is longer than this.
_FUNCTION_LIMIT: Final = 1 << 20
# Padding in front of each function (CONFIG_CALL_PADDING), in which nothing runs.
_PADDING: Final = b"__pfx_"
_READ_LIMIT: Final = 64 << 20
_HINT: Final = (
    "give the process CAP_SYSLOG and set kernel.kptr_restrict to 0 or 1 (2 hides the addresses from everybody): "
    "sudo sysctl kernel.kptr_restrict=1"
)


class KernelSymbols:
    """Text symbols by address; the text and 12 bytes a line."""

    def __init__(self, text: bytes, addresses: "array[int]", places: "array[int]") -> None:
        """`addresses` are those of the lines that begin at `places` in the text."""
        self._text = text
        order = sorted(range(len(addresses)), key=addresses.__getitem__)
        self._addresses = array("Q", map(addresses.__getitem__, order))
        self._places = array("I", map(places.__getitem__, order))

    def __len__(self) -> int:
        """How many functions there are."""
        return sum(self._text.count(b" %c " % kind) for kind in _TEXT_TYPES)

    @property
    def is_hidden(self) -> bool:
        """Whether the kernel shows no address."""
        return bool(self._addresses) and not self._addresses[-1]

    @property
    def size_bytes(self) -> int:
        return len(self._text) + 12 * len(self._addresses)

    def lookup(self, addresses: Sequence[int]) -> list[KernelSymbol | None]:
        """Function and module of each address, None outside all functions."""
        return [None if place is None else self.symbol(place) for place in map(self.place, addresses)]

    def place(self, address: int) -> int | None:
        """A number for the symbol around an address. Every symbol, also of data, ends the one before it."""
        after = bisect_right(self._addresses, address)
        return after - 1 if after and address - self._addresses[after - 1] < _FUNCTION_LIMIT else None

    def symbol(self, place: int) -> KernelSymbol | None:
        """Function, as the linker has it, and module; None for data."""
        first = bisect_left(self._addresses, self._addresses[place])
        lines = [self._text[at : self._text.index(b"\n", at)] for at in self._places[first : place + 1]]
        line = min(filter(_is_function, lines), key=_rank, default=None)
        if line is None:
            return None
        name, _, module = line[_PREFIX:].partition(b"\t")
        return plain(name), plain(module) or KERNEL_MODULE

    def ranges(self, functions: Collection[str]) -> list[tuple[int, int]]:
        """From where to where the kernel's own functions of these names lie; those of modules, which may go, are left out."""
        found = []
        for line in self._lines_named(functions):
            start = int(self._text[line : line + _DIGITS], 16)
            place = self.place(start)
            symbol = None if place is None else self.symbol(place)
            if place is not None and symbol is not None and symbol[0] in functions:
                end = self._addresses[place + 1] if place + 1 < len(self._addresses) else start + _FUNCTION_LIMIT
                found.append((start, min(end, start + _FUNCTION_LIMIT)))
        return sorted(set(found))

    def _lines_named(self, names: Iterable[str]) -> Iterator[int]:
        """Where the lines begin that end with a name; a module's end with the module."""
        for name in names:
            wanted = b" %s\n" % name.encode()
            at = self._text.find(wanted)
            while at >= 0:
                yield at - _PREFIX + 1
                at = self._text.find(wanted, at + 1)


def parse(blocks: Iterable[bytes]) -> KernelSymbols:
    """All symbols of /proc/kallsyms, given in blocks of whole lines; lines of another form are left out."""
    texts, addresses, places, size_bytes = [], array("Q"), array("I"), 0
    for block in blocks:
        lines = [line for line in block.split(b"\n")[:-1] if not line.startswith(_PADDING, _PREFIX)]
        packed = _packed(lines)
        if packed is None:
            lines = [line[:_DIGITS].lower() + line[_DIGITS:] for line in lines if _LINE.fullmatch(line)]
            packed = _packed(lines) or b""
        addresses.frombytes(packed)
        texts.append(b"\n".join([*lines, b""]))
        places.extend(accumulate([len(line) + 1 for line in lines[:-1]], initial=size_bytes) if lines else ())
        size_bytes += len(texts[-1])
    addresses.byteswap()
    symbols = KernelSymbols(b"".join(texts), addresses, places)
    if symbols.is_hidden:
        raise SourceUnavailable("kernel symbols are hidden: every address in /proc/kallsyms is 0", _HINT)
    return symbols


def load(root: Path) -> KernelSymbols:
    """The running kernel's symbols."""
    try:
        with (root / "proc/kallsyms").open("rb", buffering=0) as file:
            symbols = parse(_read_blocks(file.fileno()))
    except OSError as error:
        raise SourceUnavailable(f"cannot read /proc/kallsyms: {error.strerror}", _HINT) from None
    if not len(symbols):
        raise SourceUnavailable("/proc/kallsyms holds no function", "the kernel was built without CONFIG_KALLSYMS")
    _trim_memory()
    return symbols


def _trim_memory() -> None:
    """Give back what loading took: glibc keeps freed pages between those still in use."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def _read_blocks(descriptor: int) -> Iterator[bytes]:
    """Whole lines, some 64 KiB at a time: what is taken apart stays in the processor's cache, and the peak of memory low."""
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


def _packed(lines: list[bytes]) -> bytes | None:
    """The addresses of lines, the highest byte first, None if a line has another form; loops in C, because there are so many."""
    digits = b"".join([line[:_DIGITS] for line in lines])
    try:
        packed = bytes.fromhex(digits.decode())
    except ValueError:
        return None
    is_plain = (
        len(packed) == 8 * len(lines)
        and digits == digits.lower()
        and {line[_DIGITS:_PREFIX:2] for line in lines} <= {b"  "}
        and min(map(len, lines), default=_PREFIX + 1) > _PREFIX
    )
    return packed if is_plain else None


def _is_function(line: bytes) -> bool:
    """aarch64 mapping symbols ($x, $d) and local labels (.L) are none."""
    return line[_TYPE_AT] in _TEXT_TYPES and not line.startswith((b"$", b".L"), _PREFIX)


def _rank(line: bytes) -> int:
    """Which of the symbols at one address is shown: not a weak one, one without underscores, a global one."""
    kind = line[_TYPE_AT]
    return 4 * (kind in b"wW") + 2 * line.startswith(b"_", _PREFIX) + (kind == ord("t"))
