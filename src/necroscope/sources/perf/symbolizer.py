"""From raw call chains to numbered stacks: addresses to frames by way of the lookup process, frames to stacks of the segment.

Names are asked for in batches, once per address for the life of the module; what is sampled again costs one dictionary look-up.
"""

import os
import struct
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from necroscope.model.names import clean
from necroscope.perf_abi.event_attr import CONTEXT_MAX, CONTEXT_USER
from necroscope.sources.perf.address_space import AddressSpace
from necroscope.sources.perf.interned import Frame, Interned
from necroscope.symbols.messages import ModuleAnswer, UserRequest
from necroscope.symbols.process_maps import Mapping

_USER_MARK: Final = struct.pack("<Q", CONTEXT_USER)
_MOST_NAMES: Final = 100_000
_MOST_CHAINS: Final = 50_000
_KERNEL: Final = "[kernel]"
_UNKNOWN_USER: Final = Frame(None, "[unknown]", "user", None, None)

# The innermost function of a core with nothing to do, by cpuidle driver and architecture.
IDLE_FUNCTIONS: Final = frozenset(
    (
        *("acpi_idle_do_entry", "acpi_processor_ffh_cstate_enter", "acpi_safe_halt", "arch_cpu_idle", "cpu_do_idle"),
        *("cpu_idle_poll", "cpuidle_enter_state", "default_idle", "default_idle_call", "haltpoll_enter", "intel_idle"),
        *("intel_idle_hlt", "intel_idle_ibrs", "intel_idle_irq", "intel_idle_xstate", "io_idle", "mwait_idle"),
        *("mwait_idle_with_hints", "native_safe_halt", "poll_idle", "psci_cpu_suspend_enter", "pv_native_safe_halt"),
        *("tdx_safe_halt", "xen_safe_halt"),
    )
)


class Lookup(Protocol):
    """The lookup process, as `symbols.lookup.Lookup` gives it; everything unknown is None."""

    def kernel_symbols(self, addresses: Sequence[int]) -> list[tuple[str, str] | None]: ...

    def user_symbols(self, requests: Sequence[UserRequest]) -> list[ModuleAnswer]: ...

    def jit_symbols(self, pid: int, addresses: Sequence[int]) -> list[str | None]: ...

    def vdso_symbols(self, offsets: Sequence[int]) -> list[str | None]: ...

    def process_maps(self, pid: int) -> list[Mapping] | None: ...

    def reload_kernel_symbols(self) -> None: ...


def split_chain(raw: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Kernel and user addresses, innermost first. All but a part's first are return addresses: one less lies in the call."""
    addresses = struct.unpack(f"<{len(raw) // 8}Q", raw)
    parts: tuple[list[int], list[int]] = ([], [])
    part, start = parts[0], 0
    for at in [at for at, address in enumerate(addresses) if address >= CONTEXT_MAX]:
        part += _calls(addresses[start:at])
        part, start = parts[addresses[at] == CONTEXT_USER], at + 1
    part += _calls(addresses[start:])
    return parts


def _calls(addresses: Sequence[int]) -> list[int]:
    """The first is where the core was, or the system call's own return, which is right as it is."""
    return [*addresses[:1], *[address - 1 for address in addresses[1:]]]


class Module:
    """Frames of one file's offsets, shared by all processes that map it."""

    __slots__ = ("build_id", "label", "names")

    def __init__(self, label: str) -> None:
        self.label = label
        self.build_id: str | None = None
        self.names: dict[int, int] = {}


ModuleKey = tuple[int, int, int, str]


class _Wanted:
    """What a batch of chains needs to know: addresses by program image, and the offsets they lie at in files."""

    def __init__(self) -> None:
        self.images: dict[int, tuple[int, AddressSpace, set[int]]] = {}
        self.offsets: dict[ModuleKey, tuple[int, set[int]]] = {}
        self.places: list[tuple[AddressSpace, int, Module, int]] = []

    def add(self, pid: int, space: AddressSpace, addresses: Iterable[int]) -> None:
        self.images.setdefault(id(space), (pid, space, set()))[2].update(addresses)


class Symbolizer:
    """Numbers for chains: what a cache knows costs one look-up, the rest is resolved together."""

    def __init__(self, lookup: Lookup) -> None:
        self.interned = Interned()
        self.idle_addresses: set[bytes] = set()
        self._lookup = lookup
        self._kernel_names: dict[int, int] = {}
        self._kernel_stacks: dict[bytes, int] = {}
        self._modules: dict[ModuleKey, Module] = {}
        self._unknown = self.interned.frame(_UNKNOWN_USER)

    def cache_for(self, raw: bytes, space: AddressSpace) -> dict[bytes, int]:
        """Where the number of this chain is kept: one with user frames means something only in its program image."""
        return space.stacks if _USER_MARK in raw else self._kernel_stacks

    def resolve(self, chains: Sequence[tuple[bytes, int, AddressSpace]]) -> None:
        """Number chains that their cache does not hold yet, asking for all their unknown names together."""
        split = [(raw, space, *split_chain(raw)) for raw, _, space in chains]
        self._learn_kernel({address for _, _, kernel, _ in split for address in kernel} - self._kernel_names.keys())
        wanted = _Wanted()
        for (_, pid, space), (_, _, _, user) in zip(chains, split, strict=True):
            if user:
                wanted.add(pid, space, user)
        self._learn_user(wanted)
        kernel_name = self._kernel_names.__getitem__
        for raw, space, kernel, user in split:
            frames = [*map(space.names.__getitem__, reversed(user)), *map(kernel_name, reversed(kernel))]
            self.cache_for(raw, space)[raw] = self.interned.stack(frames)

    def bound(self, spaces: Iterable[AddressSpace]) -> None:
        """Empty what has outgrown its bound; call it when no chain waits for its number."""
        spaces = list(spaces)
        chains = len(self._kernel_stacks) + sum(len(space.stacks) for space in spaces)
        names = sum(len(module.names) for module in self._modules.values()) + sum(len(space.names) for space in spaces)
        if chains > _MOST_CHAINS:
            self._kernel_stacks.clear()
            for space in spaces:
                space.stacks.clear()
        if names + len(self._kernel_names) > _MOST_NAMES:
            self._forget_names(spaces)

    def start_segment(self, spaces: Iterable[AddressSpace]) -> None:
        """Stack numbers begin again; frame numbers too, once there are too many of them."""
        spaces = list(spaces)
        self._kernel_stacks.clear()
        for space in spaces:
            space.stacks.clear()
        if self.interned.frames_known > _MOST_NAMES:
            self.interned = Interned()
            self._unknown = self.interned.frame(_UNKNOWN_USER)
            self._forget_names(spaces)
        else:
            self.interned.start_segment()

    def reload_kernel(self) -> None:
        """Modules or BPF programs came or went: an address may mean another function now."""
        self._lookup.reload_kernel_symbols()
        self.forget_kernel()

    def forget_kernel(self) -> None:
        self._kernel_names.clear()
        self._kernel_stacks.clear()
        self.idle_addresses.clear()

    def _forget_names(self, spaces: list[AddressSpace]) -> None:
        self._modules.clear()
        self.forget_kernel()
        for space in spaces:
            space.names.clear()

    def _learn_kernel(self, addresses: set[int]) -> None:
        if not addresses:
            return
        ordered = sorted(addresses)
        for address, symbol in zip(ordered, self._lookup.kernel_symbols(ordered), strict=True):
            if symbol is None:
                frame = Frame(None, _KERNEL, "kernel", _signed(address), None)
            else:
                frame = Frame(symbol[0], symbol[1], "kernel", None, None)
                if symbol[0] in IDLE_FUNCTIONS:
                    self.idle_addresses.add(struct.pack("<Q", address))
            self._kernel_names[address] = self.interned.frame(frame)

    def _learn_user(self, wanted: _Wanted) -> None:
        """One request per file, one per process with code of its own making, one for the vdso."""
        for pid, space, addresses in wanted.images.values():
            if not space.is_complete:
                space.complete(lambda pid=pid: self._lookup.process_maps(pid))  # type: ignore[misc]
            missing = addresses - space.names.keys()
            if missing:
                self._place(pid, space, missing, wanted)
        self._ask_files(wanted.offsets)
        for space, address, module, offset in wanted.places:
            space.names[address] = module.names[offset]

    def _place(self, pid: int, space: AddressSpace, addresses: set[int], wanted: _Wanted) -> None:
        """Find the file behind each address; what has none is asked for at once."""
        made: list[int] = []
        vdso: dict[int, int] = {}
        for address in addresses:
            mapping = space.find(address)
            if mapping is None or not _is_file(mapping.path):
                if mapping is not None and mapping.path == "[vdso]":
                    vdso[address] = address - mapping.start
                else:
                    made.append(address)
                continue
            key = (mapping.device_major, mapping.device_minor, mapping.inode, mapping.path)
            module = self._module(key)
            offset = address - mapping.start + mapping.file_offset
            if offset not in module.names:
                wanted.offsets.setdefault(key, (pid, set()))[1].add(offset)
            wanted.places.append((space, address, module, offset))
        self._ask_jit(pid, space, sorted(made))
        self._ask_vdso(space, vdso)

    def _ask_files(self, offsets_by_file: dict[ModuleKey, tuple[int, set[int]]]) -> None:
        if not offsets_by_file:
            return
        requests = [UserRequest(pid, key[3], *key[:3], tuple(sorted(offsets))) for key, (pid, offsets) in offsets_by_file.items()]
        for request, (build_id, names) in zip(requests, self._lookup.user_symbols(requests), strict=True):
            module = self._modules[request.device_major, request.device_minor, request.inode, request.path]
            module.build_id = module.build_id or build_id
            for offset, name in zip(request.offsets, names, strict=True):
                frame = Frame(name, module.label, "user", None if name else offset, module.build_id)
                module.names[offset] = self.interned.frame(frame)

    def _ask_jit(self, pid: int, space: AddressSpace, addresses: list[int]) -> None:
        """Code that a just-in-time compiler made, with its perf map; without one it is unknown."""
        for address, name in zip(addresses, self._lookup.jit_symbols(pid, addresses) if addresses else (), strict=True):
            space.names[address] = self.interned.frame(Frame(name, "[jit]", "jit", None, None)) if name else self._unknown

    def _ask_vdso(self, space: AddressSpace, offsets: dict[int, int]) -> None:
        names = self._lookup.vdso_symbols([*offsets.values()]) if offsets else []
        for (address, offset), name in zip(offsets.items(), names, strict=True):
            space.names[address] = self.interned.frame(Frame(name, "[vdso]", "user", None if name else offset, None))

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
