"""The lookup process's answers: the functions near an address. A symbol table is read once per build id, into a bounded cache."""

import os
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.symbols import process_maps, vdso
from necroscope.symbols.debug_files import find_functions
from necroscope.symbols.elf import Elf, Segments
from necroscope.symbols.function_index import FunctionIndex, index_debugdata, index_dynsym, index_symtab
from necroscope.symbols.image import FileImage, Image, ImageError
from necroscope.symbols.jit import JitMaps
from necroscope.symbols.messages import BLOCK_BITS, FunctionBlock, ModuleAnswer, UserRequest, unknown_module
from necroscope.symbols.process_maps import Mapping
from necroscope.symbols.symbol_names import plain
from necroscope.symbols.target_files import MAPS_LIMIT_BYTES, open_mapped, open_root, read_bounded
from necroscope.symbols.vdso import Vdso

TABLES_LIMIT_BYTES: Final = 16 << 20
_MODULES_LIMIT: Final = 4096

FileIdentity = tuple[int, int, int, int]
TableKey = tuple[object, ...]


class Module(NamedTuple):
    """What is kept of each file; `key` is that of its tables, which files of one build share."""

    build_id: str | None
    segments: Segments
    key: TableKey


class Resolver:
    def __init__(self, root: Path, tables_limit_bytes: int = TABLES_LIMIT_BYTES) -> None:
        self._root = root
        self._tables_limit_bytes = tables_limit_bytes
        self._vdso: Vdso | None = None
        self._modules: OrderedDict[FileIdentity, Module | None] = OrderedDict()
        self._tables: OrderedDict[TableKey, list[FunctionIndex]] = OrderedDict()
        self._jit_maps = JitMaps(root)
        self.tables_read = 0

    def vdso_symbols(self, offsets: Sequence[int]) -> list[str | None]:
        if self._vdso is None:
            self._vdso = vdso.load()
        return self._vdso.lookup(list(offsets))

    def jit_symbols(self, pid: int, addresses: Sequence[int]) -> list[str | None]:
        return self._jit_maps.lookup(pid, addresses)

    def process_maps(self, pid: int) -> list[Mapping] | None:
        text = read_bounded(self._root / f"proc/{pid}/maps", MAPS_LIMIT_BYTES)
        return None if text is None else process_maps.parse(text)

    def user_functions(self, request: UserRequest) -> ModuleAnswer:
        unknown = unknown_module(request)
        device = (request.device_major, request.device_minor)
        descriptor = open_mapped(self._root, request.pid, request.path, device, request.inode)
        if descriptor is None:
            return unknown
        try:
            return self._resolve(FileImage(descriptor), _identity(descriptor), request) or unknown
        except (ImageError, MemoryError):
            return unknown
        finally:
            os.close(descriptor)

    def _resolve(self, image: FileImage, identity: FileIdentity, request: UserRequest) -> ModuleAnswer | None:
        module = self._module(image, identity)
        if module is None:
            return None
        tables = self._functions(module, image, request)
        functions: list[FunctionBlock] = []
        for first, last in _runs(request.blocks):
            changes = _functions_between(first << BLOCK_BITS, (last + 1) << BLOCK_BITS, module.segments, tables, image)
            functions += [_block_of(block, changes) for block in range(first, last + 1)]
        return ModuleAnswer(module.build_id, functions)

    def _module(self, image: FileImage, identity: FileIdentity) -> Module | None:
        """The headers are read once per file; what is no ELF file of ours is remembered as None."""
        if identity not in self._modules:
            try:
                elf = Elf(image)
                key: TableKey = (elf.build_id, elf.layout) if elf.build_id else identity
                self._modules[identity] = Module(elf.build_id, elf.segments, key)
            except ImageError:
                self._modules[identity] = None
            if len(self._modules) > _MODULES_LIMIT:
                self._modules.popitem(last=False)
        self._modules.move_to_end(identity)
        return self._modules[identity]

    def _functions(self, module: Module, image: FileImage, request: UserRequest) -> list[FunctionIndex]:
        tables = self._tables.get(module.key)
        if tables is None:
            tables = self._tables[module.key] = self._read_tables(Elf(image), image, request)
            self.tables_read += 1
            self._forget_oldest()
        self._tables.move_to_end(module.key)
        return tables

    def _forget_oldest(self) -> None:
        """Keeps the newest table whatever its size: it is being asked about."""
        total_bytes = sum(table.size_bytes for tables in self._tables.values() for table in tables)
        while total_bytes > self._tables_limit_bytes and len(self._tables) > 1:
            _, tables = self._tables.popitem(last=False)
            total_bytes -= sum(table.size_bytes for table in tables)

    def _read_tables(self, elf: Elf, image: FileImage, request: UserRequest) -> list[FunctionIndex]:
        """The fullest there is: `.symtab`, a debug file's, or `.dynsym` with `.gnu_debugdata`."""
        table = _unless_malformed(index_symtab, elf, image) or self._read_debug_file(elf, image, request)
        if table is not None:
            return [table]
        return [table for read in (index_dynsym, index_debugdata) if (table := _unless_malformed(read, elf, image)) is not None]

    def _read_debug_file(self, elf: Elf, image: FileImage, request: UserRequest) -> FunctionIndex | None:
        roots = [root for root in (open_root(self._root, request.pid), open_root(self._root)) if root is not None]
        try:
            return find_functions(elf, image, request.path, roots)
        except ImageError:
            return None
        finally:
            for root in roots:
                os.close(root)


def _runs(blocks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of blocks that follow each other."""
    for _, run in groupby(enumerate(blocks), key=lambda item: item[1] - item[0]):
        numbers = [block for _, block in run]
        yield numbers[0], numbers[-1]


def _functions_between(
    low: int, high: int, segments: Segments, tables: list[FunctionIndex], image: Image
) -> list[tuple[int, bytes | None]]:
    """Where which function begins in a range of the file: in its parts that are loaded, by the first table that knows one."""
    names: dict[int, bytes | None] = {low: None}
    for start, end, shift in segments.pieces(low, high):
        names |= {address - shift: name for address, name in _merged(tables, start + shift, end + shift, image)}
        names.setdefault(end, None)
    names.pop(high, None)
    return [(low, names[low]), *(after for before, after in pairwise(names.items()) if after[1] != before[1])]


def _block_of(block: int, changes: list[tuple[int, bytes | None]]) -> FunctionBlock:
    low, high = block << BLOCK_BITS, (block + 1) << BLOCK_BITS
    first = bisect_right(changes, low, key=itemgetter(0)) - 1
    last = bisect_left(changes, high, key=itemgetter(0))
    part = changes[first:last]
    return FunctionBlock([max(at - low, 0) for at, _ in part], [None if name is None else plain(name) for _, name in part])


def _merged(tables: list[FunctionIndex], low: int, high: int, image: Image) -> list[tuple[int, bytes | None]]:
    answers = [table.functions(low, high, image) for table in tables]
    if len(answers) == 1:
        return answers[0]
    edges = sorted({low, *(edge for answer in answers for edge, _ in answer)})
    found = [[answer[bisect_right(answer, edge, key=itemgetter(0)) - 1][1] for answer in answers] for edge in edges]
    return [(edge, next((name for name in names if name), None)) for edge, names in zip(edges, found, strict=True)]


def _identity(descriptor: int) -> FileIdentity:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _unless_malformed(read: Callable[[Elf, Image], FunctionIndex | None], elf: Elf, image: FileImage) -> FunctionIndex | None:
    try:
        return read(elf, image)
    except ImageError:
        return None
