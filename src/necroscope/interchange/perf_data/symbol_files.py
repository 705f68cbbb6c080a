"""User functions by file offset: finds the right ELF file of each module and keeps its symbol table."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.symbols.demangle import demangle
from necroscope.symbols.elf import Elf
from necroscope.symbols.elf_symbols import FunctionTable, read_debugdata, read_dynsym, read_symtab, read_symtab_with_names
from necroscope.symbols.image import FileImage, ImageError
from necroscope.symbols.perf_map import MAP_LIMIT_BYTES, PerfMap
from necroscope.symbols.table import Addresses

_MOST_INDEXED: Final = 20_000
_SHT_SYMTAB: Final = 2
_SHT_DYNSYM: Final = 11
_ASKED_OFTEN: Final = 8
_LARGE_BYTES: Final = 1 << 20
_CACHED_NAMES: Final = ("elf", "vdso")


class SymbolFiles:
    def __init__(self, search: SymbolSearch, *, is_same_machine: bool) -> None:
        self._search = search
        self._is_same_machine = is_same_machine
        self._loaded: dict[tuple[str, str | None], _LoadedFile | None] = {}
        self._maps: dict[int, PerfMap | None] = {}
        self._index: dict[str, Path] | None = None

    def functions(self, path: str, build_id: str | None, offsets: Sequence[int]) -> list[str | None]:
        """The function at each file offset; all None where no file can be trusted to be the one that ran."""
        key = (path, build_id)
        if key not in self._loaded:
            self._loaded[key] = self._load(path, build_id)
        loaded = self._loaded[key]
        return [None] * len(offsets) if loaded is None else loaded.functions(offsets)

    def jit_functions(self, pid: int, addresses: Sequence[int]) -> list[str | None]:
        if self._search.perf_maps is None:
            return [None] * len(addresses)
        if pid not in self._maps:
            self._maps[pid] = _read_perf_map(self._search.perf_maps / f"perf-{pid}.map")
        perf_map = self._maps[pid]
        return [None] * len(addresses) if perf_map is None else perf_map.lookup(addresses)

    def _load(self, path: str, build_id: str | None) -> "_LoadedFile | None":
        for candidate in self._candidates(path, build_id):
            loaded = _LoadedFile.open(candidate, build_id)
            if loaded is not None and (build_id is not None or self._may_trust(candidate)):
                if not loaded.has_symtab and loaded.build_id is not None:
                    loaded.debug_files = list(self._debug_files(loaded.build_id))
                return loaded
        return None

    def _may_trust(self, candidate: Path) -> bool:
        """Without a build id the path alone speaks: that of a directory given, or of the machine that made the capture."""
        return self._is_same_machine or any(candidate.is_relative_to(folder) for folder in self._search.binaries)

    def _candidates(self, path: str, build_id: str | None) -> Iterator[Path]:
        if build_id is not None:
            yield from self._by_build_id(build_id)
        relative = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace").lstrip("/")
        if not path.startswith("/") or ".." in Path(relative).parts:
            return
        for folder in self._search.binaries:
            yield folder / relative
            yield folder / Path(relative).name
        yield self._search.root / relative

    def _by_build_id(self, build_id: str) -> Iterator[Path]:
        first, rest = build_id[:2], build_id[2:]
        if self._search.build_id_cache is not None:
            folder = self._search.build_id_cache / ".build-id" / first / rest
            yield from (folder / name for name in _CACHED_NAMES)
        indexed = self._indexed().get(build_id)
        if indexed is not None:
            yield indexed

    def _debug_files(self, build_id: str) -> Iterator[Path]:
        """Where the symbols of a stripped file are kept."""
        first, rest = build_id[:2], build_id[2:]
        if self._search.build_id_cache is not None:
            yield self._search.build_id_cache / ".build-id" / first / rest / "debug"
        for folder in (*self._search.binaries, self._search.root / "usr/lib/debug"):
            yield folder / ".build-id" / first / f"{rest}.debug"

    def _indexed(self) -> dict[str, Path]:
        """Build ids of all ELF files in the directories given."""
        if self._index is None:
            self._index = {}
            files = (Path(top) / name for folder in self._search.binaries for top, _, names in os.walk(folder) for name in names)
            for _, path in zip(range(_MOST_INDEXED), files, strict=False):
                loaded = _LoadedFile.open(path, None)
                if loaded is not None and loaded.build_id is not None:
                    self._index.setdefault(loaded.build_id, path)
        return self._index


class _LoadedFile:
    """One ELF file: its headers now, its symbols when they are first asked for."""

    def __init__(self, path: Path, elf: Elf) -> None:
        self.build_id = elf.build_id
        self.has_symtab = elf.section_of_type(_SHT_SYMTAB) is not None
        self.debug_files: list[Path] = []
        self._path = path
        self._segments = elf.segments
        self._tables: list[FunctionTable] | None = None
        self._is_large = any(
            section is not None and section.size_bytes > _LARGE_BYTES
            for section in (elf.section_of_type(_SHT_SYMTAB), elf.section_of_type(_SHT_DYNSYM))
        )
        self._asked = 0

    @classmethod
    def open(cls, path: Path, build_id: str | None) -> "_LoadedFile | None":
        """None for what is no ELF file, or one of another build id; a shorter id (md5, 16 bytes) comes padded with zeros."""
        try:
            with _image(path) as image:
                elf = Elf(image)
        except (OSError, ImageError, ValueError):
            return None
        if build_id is not None and (elf.build_id or "").ljust(40, "0") != build_id.ljust(40, "0"):
            return None
        return cls(path, elf)

    def functions(self, offsets: Sequence[int]) -> list[str | None]:
        try:
            with _image(self._path) as image:
                return self._find(offsets, image)
        except (OSError, ImageError, ValueError):
            return [None] * len(offsets)

    def _find(self, offsets: Sequence[int], image: FileImage) -> list[str | None]:
        addresses = self._segments.addresses_at(np.array(offsets, np.int64))
        names: list[bytes | None] = [None] * len(offsets)
        for table in self._tables_for(addresses, image):
            unnamed = [place for place, name in enumerate(names) if name is None]
            for place, name in zip(unnamed, table.names(addresses[unnamed], image), strict=True):
                names[place] = name
        demangled = {name: demangle(name) for name in set(names) if name is not None}
        return [None if name is None else demangled[name] for name in names]

    def _tables_for(self, addresses: Addresses, image: FileImage) -> list[FunctionTable]:
        """Of a large file only what these addresses need, until it was asked about again and again."""
        if self._tables is not None:
            return self._tables
        debug = next((table for path in self.debug_files if (table := _read_debug_file(path, self.build_id))), None)
        self._asked += 1
        if debug is None and self._is_large and self._asked < _ASKED_OFTEN:
            return _read_tables(Elf(image), image, addresses)
        self._tables = [debug] if debug is not None else _read_tables(Elf(image), image, None)
        return self._tables


def _read_tables(elf: Elf, image: FileImage, near: Addresses | None) -> list[FunctionTable]:
    table = read_symtab(elf, image, near)
    found = [table] if table is not None else [read_dynsym(elf, image, near), read_debugdata(elf, image)]
    return [table for table in found if table is not None]


def _read_debug_file(path: Path, build_id: str | None) -> FunctionTable | None:
    """Only its symbols: where the file's bytes lie in memory, the stripped file alone says."""
    try:
        with _image(path) as image:
            return read_symtab_with_names(image) if Elf(image).build_id == build_id else None
    except (OSError, ImageError, ValueError):
        return None


@contextmanager
def _image(path: Path) -> Iterator[FileImage]:
    """Regular files only, without waiting: a capture may name a pipe or a device."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ImageError("no regular file")
        yield FileImage(descriptor)
    finally:
        os.close(descriptor)


def _read_perf_map(path: Path) -> PerfMap | None:
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - MAP_LIMIT_BYTES, 0))
            content = file.read(MAP_LIMIT_BYTES)
    except OSError:
        return None
    perf_map = PerfMap()
    perf_map.append(content + b"\n")
    return perf_map
