"""Kernel functions of a capture: a kallsyms file of the same kernel, moved to where that one was
loaded, and KSYMBOL records.
"""

import struct
from collections.abc import Iterable
from pathlib import Path
from threading import Thread
from typing import Final

from necroscope.errors import NecroscopeError, SourceUnavailable, UsageError
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.perf_abi.records import HEADER, KSYMBOL_BODY, KSYMBOL_GONE, MMAP2
from necroscope.profile import kernel_symbols
from necroscope.profile.core import Core
from necroscope.profile.kernel_functions import KernelFunctions
from necroscope.profile.kernel_symbols import KernelSymbols
from necroscope.symbols.messages import (
    BLOCK_BITS,
    NO_FUNCTION,
    FunctionBlock,
    pack_block,
    unpack_block,
)

# perf names the kernel's mapping by the symbol it is measured from: [kernel.kallsyms]_text, before
# 5.8 _stext.
_KERNEL_PREFIX: Final = b"[kernel.kallsyms]"
_MAPPING: Final = struct.Struct(
    "<16xQQQ"
)  # behind header, pid and tid: address, length, file offset
_NAME_AT: Final = {False: 40, True: 72}  # in MMAP, in MMAP2
_END: Final = 1 << 64
_BLOCK_BYTES: Final = 1 << BLOCK_BITS


class KernelNames:
    """`why_unnamed` says why no kernel symbol is known. A thread reads kallsyms: the kernel takes
    its time to write it.
    """

    def __init__(
        self,
        core: Core,
        search: SymbolSearch,
        build_id: str | None,
        known: dict[Path, KernelSymbols],
        *,
        is_same_machine: bool,
    ) -> None:
        """`known` are files that other captures needed before."""
        self.why_unnamed = ""
        self._functions = KernelFunctions(core, self._read)
        self._functions.may_reload = False
        self._search = search
        self._known = known
        self._mapping: tuple[bytes, int, int, int] | None = None
        self._path = self._find_file(build_id, is_same_machine=is_same_machine)
        self._loading = Thread(target=self._load)
        self._loading.start()

    def answer(self, block: int) -> None:
        """UsageError if the file that was given is not a copy of kallsyms."""
        self._functions.answer(block)

    def close(self) -> None:
        self._loading.join()

    def note_mapping(self, record: bytes) -> None:
        """Of the kernel itself; the first one counts."""
        name = record[_NAME_AT[HEADER.unpack_from(record)[0] == MMAP2] :].partition(b"\0")[0]
        if self._mapping is None and name.startswith(_KERNEL_PREFIX):
            start, length, offset = _MAPPING.unpack_from(record)
            self._mapping = (
                name.removeprefix(_KERNEL_PREFIX),
                start,
                min(start + length, _END),
                offset,
            )

    def note_programs(self, records: Iterable[bytes]) -> None:
        """KSYMBOL: code that the kernel got or gave up, a BPF program, a trampoline."""
        for record in records:
            start, length, _, flags = KSYMBOL_BODY.unpack_from(record, 8)
            if flags & KSYMBOL_GONE:
                self._functions.unload(start, length)
            else:
                self._functions.load(start, length, record[24:].partition(b"\0")[0])

    def _load(self) -> None:
        if self._path is None or self._path in self._known:
            return
        try:
            self._known[self._path] = kernel_symbols.read(self._path)
        except NecroscopeError as error:
            self.why_unnamed = error.facts

    def _read(self) -> "KernelSymbols | _MovedSymbols":
        self._loading.join()
        symbols = self._known.get(self._path) if self._path is not None else None
        if symbols is None:
            if (
                self._path is not None
                and self._path == self._search.kallsyms
                and "holds no" in self.why_unnamed
            ):
                raise UsageError(
                    self.why_unnamed, "copy /proc/kallsyms as root on the machine of the capture"
                )
            raise SourceUnavailable(self.why_unnamed, "")
        reference, start, end, offset = self._mapping or (b"", 0, 0, 0)
        address = symbols.address_of(reference.decode("utf-8", "replace")) if reference else None
        is_moved = address is not None and address != offset
        return (
            _MovedSymbols(symbols, (start, end), offset - (address or 0)) if is_moved else symbols
        )

    def _find_file(self, build_id: str | None, *, is_same_machine: bool) -> Path | None:
        if self._search.kallsyms is not None:
            return self._search.kallsyms
        if build_id is not None and self._search.build_id_cache is not None:
            cached = self._search.build_id_cache / _KERNEL_PREFIX.decode() / build_id / "kallsyms"
            if cached.is_file():
                return cached
        if not (build_id == _running_build_id(self._search.root) if build_id else is_same_machine):
            self.why_unnamed = (
                "the capture is of another kernel than the running one; give its kallsyms file"
            )
            return None
        return self._search.root / "proc/kallsyms"


class _MovedSymbols:
    """Symbols of a kernel that was loaded elsewhere. Modules are reloaded each boot: theirs mean
    nothing.
    """

    def __init__(self, symbols: KernelSymbols, core_text: tuple[int, int], by: int) -> None:
        self.core_text = core_text
        self._symbols = symbols
        self._by = by

    def block(self, number: int) -> FunctionBlock:
        low = number << BLOCK_BITS
        start, end = (min(max(at - low, 0), _BLOCK_BYTES) for at in self.core_text)
        if start >= end:
            return NO_FUNCTION
        # Kernels are moved by more than a block, but a file may say anything: then it lies in two.
        first = low - self._by >> BLOCK_BITS
        functions = {
            (one << BLOCK_BITS) + at + self._by - low: name
            for one in (first, first + 1)
            if 0 <= one < 1 << 64 - BLOCK_BITS
            for at, name in unpack_block(self._symbols.block(one))
        }
        names = {
            0: b"",
            start: next(
                (functions[at] for at in sorted(functions, reverse=True) if at <= start), b""
            ),
        }
        names |= {at: name for at, name in sorted(functions.items()) if start < at < end}
        if end < _BLOCK_BYTES:
            names[end] = b""
        return pack_block(sorted(names.items()))

    def ranges(self, names: Iterable[str]) -> list[tuple[int, int]]:
        return [(start + self._by, end + self._by) for start, end in self._symbols.ranges(names)]


def _running_build_id(root: Path) -> str | None:
    """/sys/kernel/notes is the kernel's notes section; an ELF file is made of it no more, so it is
    looked through by hand.
    """
    try:
        notes = (root / "sys/kernel/notes").read_bytes()[: 1 << 16]
    except OSError:
        return None
    at = notes.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
    return notes[at + 16 : at + 36].hex() if at >= 0 else None
