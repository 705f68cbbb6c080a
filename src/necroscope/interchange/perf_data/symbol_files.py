"""User functions by blocks of file offsets: finds the right ELF file of each module and keeps its
symbol tables.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.symbols.elf import Elf
from necroscope.symbols.function_index import (
    FileFunctions,
    FunctionIndex,
    index_debugdata,
    index_dynsym,
    index_symtab,
    index_symtab_with_names,
)
from necroscope.symbols.image import FileIdentity, FileImage, ImageError
from necroscope.symbols.perf_map import MAP_LIMIT_BYTES, PerfMap

_MOST_INDEXED: Final = 20_000
# Of a symbol there are 24 bytes; beyond these tables are read again when they are asked for.
_TABLES_LIMIT_BYTES: Final = 12 << 20
# Names of a file that are read at once; of more those are read that are needed.
_NAMES_BYTES: Final = 2 << 20
_CACHED_NAMES: Final = ("elf", "vdso")


class OpenFunctions(NamedTuple):
    """And the descriptor of the file that their names are read from."""

    functions: FileFunctions | None
    descriptor: int

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


class SymbolFiles:
    def __init__(self, search: SymbolSearch, *, is_same_machine: bool) -> None:
        self._search = search
        self._is_same_machine = is_same_machine
        self._loaded: dict[tuple[str, str | None], _LoadedFile | None] = {}
        self._in_use: dict[_LoadedFile, int] = {}
        self._maps: dict[int, PerfMap | None] = {}
        self._index: dict[str, Path] | None = None

    def open(self, path: str, build_id: str | None) -> "OpenFunctions":
        """The functions are None where no file can be trusted to be the one that ran."""
        key = path, build_id
        if key not in self._loaded:
            self._loaded[key] = self._load(path, build_id)
        loaded = self._loaded[key]
        if loaded is None:
            return OpenFunctions(None, -1)
        descriptor = -1
        try:
            descriptor = _open(loaded.path)
            functions = loaded.functions(FileImage(descriptor))
        except (OSError, ImageError, ValueError):
            functions = None
        self._forget_oldest(loaded)
        return OpenFunctions(functions, descriptor)

    def jit_functions(self, pid: int, addresses: Sequence[int]) -> list[str | None]:
        if self._search.perf_maps is None:
            return [None] * len(addresses)
        if pid not in self._maps:
            self._maps[pid] = _read_perf_map(self._search.perf_maps / f"perf-{pid}.map")
        perf_map = self._maps[pid]
        return [None] * len(addresses) if perf_map is None else perf_map.lookup(addresses)

    def _forget_oldest(self, asked: "_LoadedFile") -> None:
        """Keeps the tables that are being asked about, whatever their size."""
        self._in_use.pop(asked, None)
        self._in_use[asked] = sum(table.size_bytes for table in asked.known or ())
        while sum(self._in_use.values()) > _TABLES_LIMIT_BYTES and len(self._in_use) > 1:
            oldest = next(iter(self._in_use))
            del self._in_use[oldest]
            oldest.known = None

    def _load(self, path: str, build_id: str | None) -> "_LoadedFile | None":
        for candidate in self._candidates(path, build_id):
            loaded = _LoadedFile.open(candidate, build_id)
            if loaded is not None and (build_id is not None or self._may_trust(candidate)):
                if loaded.build_id is not None:
                    loaded.debug_files = list(self._debug_files(loaded.build_id))
                return loaded
        return None

    def _may_trust(self, candidate: Path) -> bool:
        """Without a build id the path alone speaks: that of a directory given, or of the machine
        that made the capture.
        """
        return self._is_same_machine or any(
            candidate.is_relative_to(folder) for folder in self._search.binaries
        )

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
            files = (
                Path(top) / name
                for folder in self._search.binaries
                for top, _, names in os.walk(folder)
                for name in names
            )
            for _, path in zip(range(_MOST_INDEXED), files, strict=False):
                loaded = _LoadedFile.open(path, None)
                if loaded is not None and loaded.build_id is not None:
                    self._index.setdefault(loaded.build_id, path)
        return self._index


class _LoadedFile:
    """One ELF file: its headers now, its symbols when they are first asked for."""

    def __init__(self, path: Path, elf: Elf, identity: FileIdentity) -> None:
        self.build_id = elf.build_id
        self.debug_files: list[Path] = []
        self.known: list[FunctionIndex] | None = None
        self.path = path
        self._elf = elf
        self._identity = identity

    @classmethod
    def open(cls, path: Path, build_id: str | None) -> "_LoadedFile | None":
        """None for what is no ELF file, or one of another build id; a shorter id (md5, 16 bytes)
        comes padded with zeros.
        """
        try:
            with _image(path) as image:
                elf, identity = Elf(image), image.identity
        except (OSError, ImageError, ValueError):
            return None
        if build_id is not None and (elf.build_id or "").ljust(40, "0") != build_id.ljust(40, "0"):
            return None
        return cls(path, elf, identity)

    def functions(self, image: FileImage) -> FileFunctions:
        if image.identity != self._identity:
            raise ImageError("replaced since its headers were read")
        if self.known is None:
            self.known = self._read_tables(self._elf, image)
        names = {
            table: image.read(table.strings.offset, table.strings.size_bytes)
            for table in self.known
            if table.names is None and table.strings.size_bytes <= _NAMES_BYTES
        }
        return FileFunctions(self._elf.segments, self.known, names)

    def _read_tables(self, elf: Elf, image: FileImage) -> list[FunctionIndex]:
        """The fullest there is: `.symtab`, a debug file's, or `.dynsym` with `.gnu_debugdata`."""
        table = index_symtab(elf, image) or next(
            filter(None, map(self._read_debug_file, self.debug_files)), None
        )
        found = (
            [table]
            if table is not None
            else [index_dynsym(elf, image), index_debugdata(elf, image)]
        )
        return [table for table in found if table is not None]

    def _read_debug_file(self, path: Path) -> FunctionIndex | None:
        """Only its symbols: where the file's bytes lie in memory, the stripped file alone says."""
        try:
            with _image(path) as image:
                return (
                    index_symtab_with_names(image) if Elf(image).build_id == self.build_id else None
                )
        except (OSError, ImageError, ValueError):
            return None


@contextmanager
def _image(path: Path) -> Iterator[FileImage]:
    descriptor = _open(path)
    try:
        yield FileImage(descriptor)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """Regular files only, without waiting: a capture may name a pipe or a device."""
    descriptor = os.open(
        path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ImageError("no regular file")
    return descriptor


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
