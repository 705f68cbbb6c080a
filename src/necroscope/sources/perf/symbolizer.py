"""From raw call chains to numbered stacks: addresses to frames by way of the lookup process, frames to stacks of the segment.

Names are asked for in batches, once per address for the life of the module; what is sampled again costs one dictionary look-up.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from necroscope.model.names import clean
from necroscope.perf_abi.event_attr import CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER
from necroscope.sources.perf.address_space import AddressSpace
from necroscope.sources.perf.interned import Frame, Interned
from necroscope.symbols.messages import ModuleAnswer, UserRequest
from necroscope.symbols.process_maps import Mapping

_USER_MARK: Final = struct.pack("<Q", CONTEXT_USER)
_MOST_NAMES: Final = 200_000
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


class Chain(NamedTuple):
    """A call chain not yet numbered: kernel and user addresses, innermost first, return addresses moved into their call."""

    raw: bytes
    pid: int
    space: AddressSpace | None
    kernel: list[int]
    user: list[int]


def split_chain(raw: bytes) -> tuple[list[int], list[int]]:
    """Kernel and user addresses of a raw chain. All but the innermost are return addresses: one less lies in the call."""
    kernel: list[int] = []
    user: list[int] = []
    part = kernel
    innermost = True
    for address in struct.unpack(f"<{len(raw) // 8}Q", raw):
        if address >= CONTEXT_MAX:
            part = user if address == CONTEXT_USER else kernel
            # The first user address is where the program stopped, unless it is in a system call, whose address is right too.
            innermost = innermost or address in (CONTEXT_USER, CONTEXT_KERNEL)
            continue
        part.append(address if innermost else address - 1)
        innermost = False
    return kernel, user


class Module:
    """Names of one file's offsets, shared by all processes that map it."""

    __slots__ = ("build_id", "label", "names")

    def __init__(self, label: str) -> None:
        self.label = label
        self.build_id: str | None = None
        self.names: dict[int, Frame] = {}


class Symbolizer:
    """Numbers for chains. `number` answers what it knows at once; the rest is collected and resolved together."""

    def __init__(self, lookup: Lookup) -> None:
        self.interned = Interned()
        self.idle_addresses: set[bytes] = set()
        self._lookup = lookup
        self._kernel_names: dict[int, Frame] = {}
        self._kernel_stacks: dict[bytes, int] = {}
        self._modules: dict[tuple[int, int, int, str], Module] = {}

    def cache_for(self, raw: bytes, space: AddressSpace) -> dict[bytes, int]:
        """Where the number of this chain is kept: one with user frames means something only in its program image."""
        return space.stacks if _USER_MARK in raw else self._kernel_stacks

    def resolve(self, chains: Sequence[tuple[bytes, int, AddressSpace]]) -> None:
        """Number chains that their cache does not hold yet, asking for all their unknown names together."""
        wanted = [self._split(*chain) for chain in chains]
        self._learn_kernel({address for chain in wanted for address in chain.kernel} - self._kernel_names.keys())
        self._learn_user(wanted)
        for chain in wanted:
            frames = self._user_frames(chain)
            frames += [self._kernel_names[address] for address in reversed(chain.kernel)]
            cache = self._kernel_stacks if chain.space is None else chain.space.stacks
            cache[chain.raw] = self.interned.stack(frames)

    def bound(self, spaces: Iterable[AddressSpace]) -> None:
        """Empty what has outgrown its bound; call it when no chain waits for its number."""
        if len(self._kernel_stacks) > _MOST_CHAINS:
            self._kernel_stacks.clear()
        if sum(len(module.names) for module in self._modules.values()) > _MOST_NAMES:
            self._modules.clear()
        if len(self._kernel_names) > _MOST_NAMES:
            self.forget_kernel()
        spaces = list(spaces)
        if sum(len(space.stacks) + len(space.jit_names) for space in spaces) > _MOST_CHAINS:
            for space in spaces:
                space.stacks.clear()
                space.jit_names.clear()

    def start_segment(self) -> None:
        self.interned.start_segment()
        self._kernel_stacks.clear()

    def reload_kernel(self) -> None:
        """Modules or BPF programs came or went: an address may mean another function now."""
        self._lookup.reload_kernel_symbols()
        self.forget_kernel()

    def forget_kernel(self) -> None:
        self._kernel_names.clear()
        self._kernel_stacks.clear()
        self.idle_addresses.clear()

    def _split(self, raw: bytes, pid: int, space: AddressSpace) -> Chain:
        kernel, user = split_chain(raw)
        return Chain(raw, pid, space if _USER_MARK in raw else None, kernel, user)

    def _learn_kernel(self, addresses: set[int]) -> None:
        if not addresses:
            return
        ordered = sorted(addresses)
        for address, symbol in zip(ordered, self._lookup.kernel_symbols(ordered), strict=True):
            if symbol is None:
                self._kernel_names[address] = Frame(None, _KERNEL, "kernel", _signed(address), None)
                continue
            self._kernel_names[address] = Frame(symbol[0], symbol[1], "kernel", None, None)
            if symbol[0] in IDLE_FUNCTIONS:
                self.idle_addresses.add(struct.pack("<Q", address))

    def _learn_user(self, chains: Sequence[Chain]) -> None:
        """One request per file, one per process with code of its own making, one for the vdso."""
        files: dict[tuple[int, int, int, str], tuple[int, set[int]]] = {}
        jit: dict[int, tuple[int, AddressSpace, set[int]]] = {}
        for chain in chains:
            if chain.space is None:
                continue
            if not chain.space.is_complete:
                pid = chain.pid
                chain.space.complete(lambda pid=pid: self._lookup.process_maps(pid))  # type: ignore[misc]
            for address in chain.user:
                mapping = chain.space.find(address)
                if mapping is None or not _is_file(mapping.path):
                    if address not in chain.space.jit_names:
                        jit.setdefault(id(chain.space), (chain.pid, chain.space, set()))[2].add(address)
                    continue
                key = (mapping.device_major, mapping.device_minor, mapping.inode, mapping.path)
                offset = address - mapping.start + mapping.file_offset
                if offset not in self._module(key).names:
                    files.setdefault(key, (chain.pid, set()))[1].add(offset)
        self._ask_files(files)
        for pid, space, addresses in jit.values():
            self._ask_jit(pid, space, sorted(addresses))

    def _ask_files(self, files: dict[tuple[int, int, int, str], tuple[int, set[int]]]) -> None:
        requests = [UserRequest(pid, key[3], *key[:3], tuple(sorted(offsets))) for key, (pid, offsets) in files.items()]
        if not requests:
            return
        for request, (build_id, names) in zip(requests, self._lookup.user_symbols(requests), strict=True):
            module = self._modules[request.device_major, request.device_minor, request.inode, request.path]
            module.build_id = module.build_id or build_id
            for offset, name in zip(request.offsets, names, strict=True):
                module.names[offset] = Frame(name, module.label, "user", None if name else offset, module.build_id)

    def _ask_jit(self, pid: int, space: AddressSpace, addresses: list[int]) -> None:
        """Code without a file: the vdso, a just-in-time compiler's with its perf map, or unknown."""
        vdso: dict[int, int] = {}
        for address in addresses:
            mapping = space.find(address)
            if mapping is not None and mapping.path == "[vdso]":
                vdso[address] = address - mapping.start
        made = [address for address in addresses if address not in vdso]
        for address, name in zip(made, self._lookup.jit_symbols(pid, made) if made else (), strict=True):
            space.jit_names[address] = Frame(name, "[jit]", "jit", None, None) if name else _UNKNOWN_USER
        for (address, offset), name in zip(
            vdso.items(), self._lookup.vdso_symbols([*vdso.values()]) if vdso else (), strict=True
        ):
            space.jit_names[address] = Frame(name, "[vdso]", "user", None if name else offset, None)

    def _user_frames(self, chain: Chain) -> list[Frame]:
        """Outermost first."""
        frames: list[Frame] = []
        if chain.space is None:
            return frames
        for address in reversed(chain.user):
            frame = chain.space.jit_names.get(address)
            if frame is None:
                mapping = chain.space.find(address)
                if mapping is not None:
                    key = (mapping.device_major, mapping.device_minor, mapping.inode, mapping.path)
                    frame = self._module(key).names.get(address - mapping.start + mapping.file_offset)
            frames.append(frame or _UNKNOWN_USER)
        return frames

    def _module(self, key: tuple[int, int, int, str]) -> Module:
        module = self._modules.get(key)
        if module is None:
            module = self._modules[key] = Module(clean(key[3].encode("utf-8", "surrogateescape"), 300))
        return module


def _is_file(path: str) -> bool:
    """Paths in brackets, `//anon` and memory files hold code that was made at run time."""
    return path.startswith("/") and not path.startswith(("//anon", "/memfd:", "/dev/zero", "/anon_hugepage", "/SYSV"))


def _signed(address: int) -> int:
    """Kernel addresses as the signed 64 bits that a column holds."""
    return address - (1 << 64) if address >= 1 << 63 else address
