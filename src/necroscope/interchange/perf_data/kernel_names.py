"""Kernel functions of a capture: a kallsyms file of the same kernel, moved to where that one was loaded, and KSYMBOL records."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from necroscope.errors import NecroscopeError, UsageError
from necroscope.interchange.perf_data.mappings import Mapping, parse_mapping
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.model.names import clean
from necroscope.perf_abi.records import KSYMBOL_BODY
from necroscope.symbols.demangle import demangle
from necroscope.symbols.kallsyms import KERNEL_MODULE, KernelSymbol, KernelSymbols, parse

# perf names the kernel's mapping by the symbol it is measured from: [kernel.kallsyms]_text, before 5.8 _stext.
_KERNEL_PREFIX: Final = "[kernel.kallsyms]"
_BLOCK_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 256 << 20


class KernelNames:
    """`why_unnamed` says why no kernel symbol is known; it is known after the first look-up."""

    def __init__(self, search: SymbolSearch, build_id: str | None, *, is_same_machine: bool) -> None:
        self.why_unnamed = ""
        self._search = search
        self._build_id = build_id
        self._is_same_machine = is_same_machine
        self._symbols: KernelSymbols | None = None
        self._is_loaded = False
        self._fault: NecroscopeError | None = None
        self._moved_by = 0
        self._core: Mapping | None = None
        self._program_starts: list[int] = []
        self._programs: list[tuple[int, KernelSymbol]] = []

    def lookup(self, addresses: Sequence[int], mappings: Iterable[bytes], programs: Iterable[bytes]) -> list[KernelSymbol | None]:
        """Function and module of each address. `mappings` are the kernel's own, `programs` KSYMBOL records."""
        self.load(mappings)
        if self._fault is not None:
            raise self._fault
        if self._symbols is None:
            found: list[KernelSymbol | None] = [None] * len(addresses)
        else:
            symbols = self._symbols.lookup([self._place(address) for address in addresses])
            found = [symbol and (demangle(symbol[0].encode()), symbol[1]) for symbol in symbols]
        if None in found:
            self._learn_programs(programs)
            found = [symbol or self._program(address) for symbol, address in zip(found, addresses, strict=True)]
        return found

    def load(self, mappings: Iterable[bytes]) -> None:
        """Once; a fault is told by `lookup`."""
        if self._is_loaded:
            return
        self._is_loaded = True
        try:
            self._load([parse_mapping(record) for record in mappings])
        except NecroscopeError as error:
            self._fault = error

    def _place(self, address: int) -> int:
        """The address in the symbol file. Modules are loaded anew each boot: with a moved kernel theirs mean nothing."""
        if not self._moved_by:
            return address
        is_core = self._core is not None and self._core.start <= address < self._core.end
        return address - self._moved_by if is_core else -1

    def _load(self, mappings: list[Mapping]) -> None:
        self._core = next((mapping for mapping in mappings if mapping.path.startswith(_KERNEL_PREFIX)), None)
        path = self._find_file()
        if path is None:
            return
        reference = self._core.path.removeprefix(_KERNEL_PREFIX) if self._core else ""
        finder = _AddressFinder(reference or "_text")
        try:
            with path.open("rb") as file:
                self._symbols = parse(finder.watch(_whole_lines(iter(lambda: file.read(_BLOCK_BYTES), b""))))
        except OSError as error:
            self.why_unnamed = f"{path} cannot be read: {error.strerror}"
        except NecroscopeError as error:
            self.why_unnamed = error.facts
        if self._symbols is not None and not len(self._symbols):
            self._symbols, self.why_unnamed = None, f"{path} holds no kernel function"
            if path == self._search.kallsyms:
                raise UsageError(f"{path} holds no kernel function", "copy /proc/kallsyms as root on the machine of the capture")
        if self._core is not None and reference and finder.address is not None:
            self._moved_by = self._core.file_offset - finder.address

    def _find_file(self) -> Path | None:
        if self._search.kallsyms is not None:
            return self._search.kallsyms
        if self._build_id is not None and self._search.build_id_cache is not None:
            cached = self._search.build_id_cache / _KERNEL_PREFIX / self._build_id / "kallsyms"
            if cached.is_file():
                return cached
        is_running = self._build_id == _running_build_id(self._search.root) if self._build_id else self._is_same_machine
        if not is_running:
            self.why_unnamed = "the capture is of another kernel than the running one; give its kallsyms file"
            return None
        return self._search.root / "proc/kallsyms"

    def _learn_programs(self, records: Iterable[bytes]) -> None:
        if self._programs:
            return
        for record in records:
            start, length, _, flags = KSYMBOL_BODY.unpack_from(record, 8)
            name = clean(record[24:].partition(b"\0")[0])
            if not flags & 1:
                module = "[bpf]" if name.startswith("bpf_prog_") else KERNEL_MODULE
                self._programs.append((start + length, (name, module)))
                self._program_starts.append(start)
        order = sorted(range(len(self._programs)), key=self._program_starts.__getitem__)
        self._program_starts = [self._program_starts[place] for place in order]
        self._programs = [self._programs[place] for place in order]

    def _program(self, address: int) -> KernelSymbol | None:
        place = bisect_right(self._program_starts, address) - 1
        if place < 0 or address >= self._programs[place][0]:
            return None
        return self._programs[place][1]


class _AddressFinder:
    """Looks for the line of one symbol while blocks of kallsyms pass by."""

    def __init__(self, symbol: str) -> None:
        self._line = re.compile(rb"([0-9a-f]{8,16}) [A-Za-z] " + re.escape(symbol.encode("utf-8", "replace")) + rb"\n")
        self.address: int | None = None

    def watch(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        for block in blocks:
            found = self._line.search(block) if self.address is None else None
            if found is not None:
                self.address = int(found[1], 16)
            yield block


def _whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    size_bytes = 0
    for piece in pieces:
        size_bytes += len(piece)
        if size_bytes > _MOST_BYTES:
            return
        end = piece.rfind(b"\n") + 1
        if end:
            yield rest + piece[:end]
            rest = piece[end:]
        elif len(rest) < _BLOCK_BYTES:
            rest += piece
        else:
            return  # no line is that long: this is no kallsyms


def _running_build_id(root: Path) -> str | None:
    """/sys/kernel/notes is the kernel's notes section; an ELF file is made of it no more, so it is looked through by hand."""
    try:
        notes = (root / "sys/kernel/notes").read_bytes()[: 1 << 16]
    except OSError:
        return None
    at = notes.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
    return notes[at + 16 : at + 36].hex() if at >= 0 else None
