"""The lookup process's answers: the functions near an address. A symbol table is read once per
build id, into a bounded cache.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.symbols import process_maps, vdso
from necroscope.symbols.debug_files import find_functions
from necroscope.symbols.elf import Elf, Segments
from necroscope.symbols.function_index import (
    FileFunctions,
    FunctionIndex,
    index_debugdata,
    index_dynsym,
    index_symtab,
)
from necroscope.symbols.image import FileIdentity, FileImage, Image, ImageError
from necroscope.symbols.jit import JitMaps
from necroscope.symbols.messages import ModuleAnswer, UserRequest, unknown_module
from necroscope.symbols.process_maps import Mapping
from necroscope.symbols.target_files import open_mapped, open_root
from necroscope.symbols.vdso import Vdso

TABLES_LIMIT_BYTES: Final = 16 << 20
# Of one process; as many as the native core keeps of one (core/profile.h).
MOST_MAPPINGS: Final = 4096
_MODULES_LIMIT: Final = 4096

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

    def jit_symbols(self, pid: int, addresses: Sequence[int]) -> list[str | None]:
        return self._jit_maps.lookup(pid, addresses)

    def process_maps(self, pid: int) -> tuple[list[Mapping], bool] | None:
        """Executable mappings, and whether there are more than are reported."""
        return process_maps.read(self._root / f"proc/{pid}/maps", MOST_MAPPINGS)

    def user_functions(self, request: UserRequest) -> ModuleAnswer:
        unknown = unknown_module(request)
        if request.path == vdso.PATH:
            return self._vdso_functions(request) or unknown
        device = (request.device_major, request.device_minor)
        descriptor = open_mapped(self._root, request.pid, request.path, device, request.inode)
        if descriptor is None:
            return unknown
        try:
            return self._resolve(FileImage(descriptor), request) or unknown
        except (ImageError, MemoryError):
            return unknown
        finally:
            os.close(descriptor)

    def _vdso_functions(self, request: UserRequest) -> ModuleAnswer | None:
        if self._vdso is None:
            self._vdso = vdso.load()
        if self._vdso.elf is None:
            return None
        functions = FileFunctions(self._vdso.elf.segments, self._vdso.tables)
        return ModuleAnswer(
            None, [functions.block(block, self._vdso.image) for block in request.blocks]
        )

    def _resolve(self, image: FileImage, request: UserRequest) -> ModuleAnswer | None:
        module = self._module(image)
        if module is None:
            return None
        functions = FileFunctions(module.segments, self._functions(module, image, request))
        return ModuleAnswer(
            module.build_id, [functions.block(block, image) for block in request.blocks]
        )

    def _module(self, image: FileImage) -> Module | None:
        """The headers are read once per file; what is no ELF file of ours is remembered as None."""
        identity = image.identity
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

    def _functions(
        self, module: Module, image: FileImage, request: UserRequest
    ) -> list[FunctionIndex]:
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
        table = _unless_malformed(index_symtab, elf, image) or self._read_debug_file(
            elf, image, request
        )
        if table is not None:
            return [table]
        return [
            table
            for read in (index_dynsym, index_debugdata)
            if (table := _unless_malformed(read, elf, image)) is not None
        ]

    def _read_debug_file(
        self, elf: Elf, image: FileImage, request: UserRequest
    ) -> FunctionIndex | None:
        roots = [
            root
            for root in (open_root(self._root, request.pid), open_root(self._root))
            if root is not None
        ]
        try:
            return find_functions(elf, image, request.path, roots)
        except ImageError:
            return None
        finally:
            for root in roots:
                os.close(root)


def _unless_malformed(
    read: Callable[[Elf, Image], FunctionIndex | None], elf: Elf, image: FileImage
) -> FunctionIndex | None:
    try:
        return read(elf, image)
    except ImageError:
        return None
