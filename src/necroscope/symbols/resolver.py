"""The lookup process's answers: the function at an address. A symbol table is read once per build id, into a bounded cache."""

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.errors import SourceUnavailable
from necroscope.symbols import kallsyms, process_maps, vdso
from necroscope.symbols.debug_files import find_functions
from necroscope.symbols.demangle import demangle
from necroscope.symbols.elf import Elf, Segments
from necroscope.symbols.elf_symbols import FunctionTable, read_debugdata, read_dynsym, read_symtab
from necroscope.symbols.image import FileImage, Image, ImageError
from necroscope.symbols.jit import JitMaps
from necroscope.symbols.kallsyms import KernelSymbols
from necroscope.symbols.messages import KernelFunction, ModuleAnswer, UserRequest, unknown_module
from necroscope.symbols.process_maps import Mapping
from necroscope.symbols.table import ADDRESS_END
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
        self._kernel: KernelSymbols | None = None
        self._vdso: Vdso | None = None
        self._modules: OrderedDict[FileIdentity, Module | None] = OrderedDict()
        self._tables: OrderedDict[TableKey, list[FunctionTable]] = OrderedDict()
        self._jit_maps = JitMaps(root)
        self.tables_read = 0

    def reload_kernel_symbols(self) -> str | None:
        """Why they are not to be had, or None."""
        try:
            self._kernel = kallsyms.load(self._root)
        except SourceUnavailable as error:
            self._kernel = None
            return f"{error.facts} ({error.hint})"
        return None

    def kernel_symbols(self, addresses: Sequence[int]) -> list[KernelFunction | None]:
        if self._kernel is None:
            return [None] * len(addresses)
        found = zip(self._kernel.lookup(addresses), self._kernel.extents(addresses), strict=True)
        return [None if symbol is None else KernelFunction(*symbol, *extent) for symbol, extent in found]

    def vdso_symbols(self, offsets: Sequence[int]) -> list[str | None]:
        if self._vdso is None:
            self._vdso = vdso.load()
        return self._vdso.lookup(list(offsets))

    def jit_symbols(self, pid: int, addresses: Sequence[int]) -> list[str | None]:
        return self._jit_maps.lookup(pid, addresses)

    def process_maps(self, pid: int) -> list[Mapping] | None:
        text = read_bounded(self._root / f"proc/{pid}/maps", MAPS_LIMIT_BYTES)
        return None if text is None else process_maps.parse(text)

    def user_symbols(self, request: UserRequest) -> ModuleAnswer:
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
        addresses = module.segments.addresses_of(request.offsets)
        names: list[bytes | None] = [None] * len(addresses)
        extents = [(0, ADDRESS_END)] * len(addresses)
        for table in self._functions(module, image, request):
            names = [name or found for name, found in zip(names, table.find(addresses, image), strict=True)]
            # Where several tables answer, the answer is the same only where none of them changes.
            narrower = zip(extents, table.extents(addresses), strict=True)
            extents = [(max(low, new_low), min(high, new_high)) for (low, high), (new_low, new_high) in narrower]
        functions = [None if name is None else demangle(name) for name in names]
        return ModuleAnswer(module.build_id, functions, _in_file(request.offsets, addresses, extents, module.segments))

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

    def _functions(self, module: Module, image: FileImage, request: UserRequest) -> list[FunctionTable]:
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

    def _read_tables(self, elf: Elf, image: FileImage, request: UserRequest) -> list[FunctionTable]:
        """The fullest there is: `.symtab`, a debug file's, or `.dynsym` with `.gnu_debugdata`."""
        table = _unless_malformed(read_symtab, elf, image) or self._read_debug_file(elf, image, request)
        if table is not None:
            return [table]
        return [table for read in (read_dynsym, read_debugdata) if (table := _unless_malformed(read, elf, image)) is not None]

    def _read_debug_file(self, elf: Elf, image: FileImage, request: UserRequest) -> FunctionTable | None:
        roots = [root for root in (open_root(self._root, request.pid), open_root(self._root)) if root is not None]
        try:
            return find_functions(elf, image, request.path, roots)
        except ImageError:
            return None
        finally:
            for root in roots:
                os.close(root)


def _in_file(
    offsets: Sequence[int], addresses: list[int], extents: list[tuple[int, int]], segments: Segments
) -> list[tuple[int, int]]:
    """Ranges of virtual addresses as ranges of file offsets, within the segment of each."""
    found = []
    for offset, address, (low, high), (start, end) in zip(offsets, addresses, extents, segments.spans_of(offsets), strict=True):
        shift = offset - address
        found.append((max(start, low + shift), min(end, high + shift)))
    return found


def _identity(descriptor: int) -> FileIdentity:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _unless_malformed(read: Callable[[Elf, Image], FunctionTable | None], elf: Elf, image: FileImage) -> FunctionTable | None:
    try:
        return read(elf, image)
    except ImageError:
        return None
