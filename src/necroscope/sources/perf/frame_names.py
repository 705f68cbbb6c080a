"""Frames of addresses: what is known answers at once, the rest is asked of the lookup process, once per function of a file.

Frames are numbers here (see `interned`). An address that lies in no executable mapping is no code: programs built without frame
pointers leave such things where a return address should be.
"""

import os
import struct
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from necroscope.model.frame import UNKNOWN_USER, Frame
from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.model.names import clean
from necroscope.sources.perf.address_space import AddressSpace, Names
from necroscope.sources.perf.interned import Interned
from necroscope.sources.perf.ranges import Ranges
from necroscope.symbols.messages import KernelFunction, ModuleAnswer, UserRequest
from necroscope.symbols.process_maps import Mapping

NOT_CODE: Final = -1
MOST_NAMES: Final = 100_000
_KERNEL: Final = "[kernel]"


class Lookup(Protocol):
    """The lookup process, as `symbols.lookup.Lookup` gives it; everything unknown is None."""

    def kernel_symbols(self, addresses: Sequence[int]) -> list[KernelFunction | None]: ...

    def user_symbols(self, requests: Sequence[UserRequest]) -> list[ModuleAnswer]: ...

    def jit_symbols(self, pid: int, addresses: Sequence[int]) -> list[str | None]: ...

    def vdso_symbols(self, offsets: Sequence[int]) -> list[str | None]: ...

    def process_maps(self, pid: int) -> list[Mapping] | None: ...

    def reload_kernel_symbols(self) -> None: ...

    @property
    def is_loading(self) -> bool: ...

    @property
    def unanswered(self) -> int: ...


class Module:
    """Frames of one file's offsets, shared by all processes that map it; those without a symbol are kept one by one."""

    __slots__ = ("build_id", "label", "named", "nameless", "unnamed")

    def __init__(self, label: str) -> None:
        self.label = label
        self.build_id: str | None = None
        self.named = Ranges()
        self.nameless = Ranges()  # where no symbol is, as far as that is known
        self.unnamed: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.named) + len(self.nameless) + len(self.unnamed)


ModuleKey = tuple[int, int, int, str]


class Wanted:
    """What the lookup process has to be asked for a batch of chains."""

    def __init__(self) -> None:
        self.kernel: set[int] = set()
        self.offsets: dict[ModuleKey, tuple[int, set[int]]] = {}
        self.made: dict[int, tuple[int, AddressSpace, set[int]]] = {}
        self.vdso: dict[int, tuple[AddressSpace, dict[int, int]]] = {}


class FrameNames:
    """Numbers of frames by address. `interned` gives the numbers, and a new one of it means that all old ones are void."""

    def __init__(self, lookup: Lookup, interned: Interned) -> None:
        self.idle_addresses: set[bytes] = set()
        self.kernel = Names()
        self._lookup = lookup
        self._unanswered = 0
        self._kernel_ranges = Ranges()
        self._modules: dict[ModuleKey, Module] = {}
        self.renumber(interned)

    def renumber(self, interned: Interned) -> None:
        self._frame = interned.frame
        self.unknown = interned.frame(UNKNOWN_USER)

    def of_kernel(self, address: int, wanted: Wanted) -> int | None:
        """None if it has to be asked for, which is noted in `wanted`."""
        number = self._kernel_ranges.find(address)
        if number is None:
            wanted.kernel.add(address)
        else:
            self.kernel.by_address[address] = number
        return number

    def of_user(self, pid: int, space: AddressSpace, address: int, wanted: Wanted) -> int | None:
        """NOT_CODE, or a number, or None if it has to be asked for, which is noted in `wanted`."""
        number = space.names.ranges.find(address)
        if number is not None:
            return number
        mapping = space.find(address)
        if mapping is None:
            return NOT_CODE
        if not _is_file(mapping.path):
            if mapping.path == "[vdso]":
                wanted.vdso.setdefault(id(space), (space, {}))[1][address] = address - mapping.start
            else:
                wanted.made.setdefault(id(space), (pid, space, set()))[2].add(address)
            return None
        key = (mapping.device_major, mapping.device_minor, mapping.inode, mapping.path)
        offset = address - mapping.start + mapping.file_offset
        module = self._module(key)
        function = module.named.extent(offset)
        if function is not None:
            start, end, number = function
            shift = address - offset
            space.names.ranges.add(address, max(mapping.start, start + shift), min(mapping.end, end + shift), number)
            return number
        number = module.unnamed.get(offset)
        if number is None and module.nameless.find(offset) is not None:
            number = module.unnamed[offset] = self._nameless(module, offset)
        if number is None:
            wanted.offsets.setdefault(key, (pid, set()))[1].add(offset)
        return number

    def _nameless(self, module: Module, offset: int) -> int:
        return self._frame(Frame(None, module.label, "user", offset, module.build_id))

    def innermost_of_user(self, raw: bytes, space: AddressSpace) -> int | None:
        """The frame of an innermost address as the ring has it, if its function is known in this program image."""
        number = space.names.ranges.find(int.from_bytes(raw, "little"))
        if number is not None:
            space.names.innermost[raw] = number
        return number

    def innermost_of_kernel(self, raw: bytes) -> int | None:
        number = self._kernel_ranges.find(int.from_bytes(raw, "little"))
        if number is not None:
            self.kernel.innermost[raw] = number
        return number

    @property
    def is_loading(self) -> bool:
        return self._lookup.is_loading

    def complete(self, pid: int, space: AddressSpace) -> None:
        """A program that started before us: its mappings are read once."""
        space.complete(lambda: self._lookup.process_maps(pid))

    def learn(self, wanted: Wanted) -> None:
        """Ask for everything noted: one request for the kernel, one per file, one per process with code of its own making."""
        if wanted.kernel:
            self._ask_kernel(sorted(wanted.kernel))
        if wanted.offsets:
            self._ask_files(wanted.offsets)
        for pid, space, addresses in wanted.made.values():
            self._ask_jit(pid, space, sorted(addresses))
        for space, offsets in wanted.vdso.values():
            self._ask_vdso(space, offsets)

    def bound(self, spaces: Iterable[AddressSpace]) -> bool:
        """Forget all names once there are too many, or some were given for want of an answer; True if that was done."""
        spaces = list(spaces)
        names = sum(map(len, self._modules.values())) + sum(len(space.names) for space in spaces)
        unanswered, self._unanswered = self._unanswered, self._lookup.unanswered
        # What nobody answered was taken for nameless; it may have a name when it is asked for again.
        if names + len(self.kernel) + len(self._kernel_ranges) <= MOST_NAMES and unanswered == self._unanswered:
            return False
        self.forget(spaces)
        return True

    def forget(self, spaces: Iterable[AddressSpace]) -> None:
        self._modules.clear()
        self.forget_kernel()
        for space in spaces:
            space.names.clear()

    def forget_kernel(self) -> None:
        self.kernel.clear()
        self._kernel_ranges.clear()
        self.idle_addresses.clear()

    def reload_kernel(self) -> None:
        """Modules or BPF programs came or went: an address may mean another function now."""
        self._lookup.reload_kernel_symbols()
        self.forget_kernel()

    def _ask_kernel(self, addresses: list[int]) -> None:
        for address, found in zip(addresses, self._lookup.kernel_symbols(addresses), strict=True):
            if found is None:
                number = self._frame(Frame(None, _KERNEL, "kernel", _signed(address), None))
            else:
                number = self._frame(Frame(found.function, found.module, "kernel", None, None))
                if found.function in IDLE_FUNCTIONS:
                    self.idle_addresses.add(struct.pack("<Q", address))
                elif self._kernel_ranges.find(address) is None:
                    self._kernel_ranges.add(address, found.start, found.end, number)
            self.kernel.by_address[address] = number

    def _ask_files(self, offsets_by_file: dict[ModuleKey, tuple[int, set[int]]]) -> None:
        requests = [UserRequest(pid, key[3], *key[:3], tuple(sorted(offsets))) for key, (pid, offsets) in offsets_by_file.items()]
        for request, answer in zip(requests, self._lookup.user_symbols(requests), strict=True):
            module = self._modules[request.device_major, request.device_minor, request.inode, request.path]
            module.build_id = module.build_id or answer.build_id
            for offset, name, extent in zip(request.offsets, answer.functions, answer.extents, strict=True):
                if name is None:
                    module.unnamed[offset] = self._nameless(module, offset)
                    if module.nameless.find(offset) is None:
                        module.nameless.add(offset, *extent, self.unknown)
                elif module.named.find(offset) is None:
                    number = self._frame(Frame(name, module.label, "user", None, module.build_id))
                    module.named.add(offset, *extent, number)

    def _ask_jit(self, pid: int, space: AddressSpace, addresses: list[int]) -> None:
        """Code that a just-in-time compiler made, with its perf map; without one it is unknown."""
        for address, name in zip(addresses, self._lookup.jit_symbols(pid, addresses), strict=True):
            number = self._frame(Frame(name, "[jit]", "jit", None, None)) if name else self.unknown
            space.names.by_address[address] = number

    def _ask_vdso(self, space: AddressSpace, offsets: dict[int, int]) -> None:
        for (address, offset), name in zip(offsets.items(), self._lookup.vdso_symbols([*offsets.values()]), strict=True):
            frame = Frame(name, "[vdso]", "user", None if name else offset, None)
            space.names.by_address[address] = self._frame(frame)

    def _module(self, key: ModuleKey) -> Module:
        module = self._modules.get(key)
        if module is None:
            module = self._modules[key] = Module(clean(os.fsencode(key[3]), 300))
        return module


def _is_file(path: str) -> bool:
    """Paths in brackets, `//anon` and memory files hold code that was made at run time."""
    return path.startswith("/") and not path.startswith(("//anon", "/memfd:", "/dev/zero", "/anon_hugepage", "/SYSV"))


def _signed(address: int) -> int:
    """Kernel addresses as the signed 64 bits that a column holds."""
    return address - (1 << 64) if address >= 1 << 63 else address
