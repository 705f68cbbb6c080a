"""Frames of addresses: what is known answers at once, the rest is asked of the lookup process, once per 16 KiB of a file.

Frames are numbers here (see `interned`). An address that lies in no executable mapping is no code: programs built without frame
pointers leave such things where a return address should be. What is known is kept by the offset in its file, so that the next
process that runs the same program has nothing to learn.
"""

import os
import struct
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, Protocol

from necroscope.model.frame import UNKNOWN_USER, Frame
from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.model.names import clean
from necroscope.sources.perf.address_space import AddressSpace
from necroscope.sources.perf.function_blocks import FunctionBlocks
from necroscope.sources.perf.interned import Interned
from necroscope.symbols.messages import BLOCK_BITS, NO_FUNCTION, FunctionBlock, ModuleAnswer, UserRequest
from necroscope.symbols.process_maps import Mapping
from necroscope.symbols.symbol_names import MANGLED

ASKED: Final = -1
# Addresses, and frames; about 130 bytes each.
MOST_NAMES: Final = 40_000
_KERNEL: Final = "[kernel]"
_BPF: Final = "[bpf]"
# Agents that load programs all the time are named by kallsyms; of the last ones the kernel's own records tell.
_MOST_LOADED: Final = 256
_FEW_QUESTIONS: Final = 2
_MOST_BLOCKS: Final = 256


class Lookup(Protocol):
    """The lookup process, as `symbols.lookup.Lookup` gives it; everything unknown is None."""

    def kernel_place(self, address: int) -> int | None: ...

    def kernel_symbol(self, place: int) -> tuple[str, str] | None: ...

    def user_functions(self, requests: Sequence[UserRequest]) -> list[ModuleAnswer | None]: ...

    def demangle(self, symbols: Sequence[str]) -> list[str]: ...

    def jit_symbols(self, pid: int, addresses: Sequence[int]) -> list[str | None]: ...

    def vdso_symbols(self, offsets: Sequence[int]) -> list[str | None]: ...

    def process_maps(self, pid: int) -> list[Mapping] | None: ...

    def reload_kernel_symbols(self) -> None: ...

    @property
    def is_loading(self) -> bool: ...

    @property
    def unanswered(self) -> int: ...


class Module:
    """Frames of one file's offsets, shared by all processes that map it."""

    __slots__ = ("build_id", "frames", "label", "questions")

    def __init__(self, label: str) -> None:
        self.label = label
        self.build_id: str | None = None
        self.frames: dict[int, int] = {}
        self.questions = 0

    @property
    def is_asked_often(self) -> bool:
        """A file of which ever new functions run: it is cheaper to learn all of them at once."""
        return self.questions >= _FEW_QUESTIONS


ModuleKey = tuple[int, int, int, str]


class Wanted:
    """What the lookup process has to be asked for a batch of chains."""

    def __init__(self) -> None:
        self.blocks: dict[ModuleKey, tuple[int, set[int]]] = {}
        self.made: dict[int, tuple[int, AddressSpace, set[int]]] = {}
        self.vdso: set[int] = set()
        self.mangled: set[str] = set()


class FrameNames:
    """Numbers of frames by address. `interned` gives the numbers, and a new one of it means that all old ones are void."""

    def __init__(self, lookup: Lookup, interned: Interned) -> None:
        self.idle_addresses: set[bytes] = set()
        self.kernel: dict[int, int] = {}
        self.may_reload = True
        self._kernel_functions: dict[int, int] = {}
        self._changeable: set[int] = set()
        self._is_kernel_stale = False
        self._lookup = lookup
        self._unanswered = 0
        self._functions = FunctionBlocks()
        self._modules: dict[ModuleKey, Module] = {}
        self._vdso: dict[int, int] = {}
        self._addresses = 0
        self._guessed: list[tuple[Hashable, int]] = []
        self._demangled: dict[str, str] = {}
        self._loaded: dict[tuple[int, int], str] = {}
        self.renumber(interned)

    def renumber(self, interned: Interned) -> None:
        self._functions.clear()
        self._kernel_functions.clear()
        self._frame = interned.frame
        self.unknown = interned.frame(UNKNOWN_USER)
        self._idle: set[int] = set()

    @property
    def is_loading(self) -> bool:
        return self._lookup.is_loading

    def locate(self, pid: int, space: AddressSpace) -> None:
        """Make its mappings known. Those of a program older than us are read once."""
        space.complete(lambda: self._lookup.process_maps(pid))
        space.locate()

    def of_kernel(self, address: int, wanted: Wanted) -> int:
        """ASKED if its name has to be demangled, which is noted in `wanted`."""
        place = self._lookup.kernel_place(address)
        number = None if place is None else self._kernel_functions.get(place)
        if number is None:
            number = self._of_kernel_function(address, place, wanted)
        if number in self._idle:
            self.idle_addresses.add(struct.pack("<Q", address))
        if number != ASKED:
            self.kernel[address] = number
            self._addresses += 1
        return number

    def _of_kernel_function(self, address: int, place: int | None, wanted: Wanted) -> int:
        if self._loaded and (loaded := self._loaded_at(address)) is not None:
            self._changeable.add(address)
            return self._frame(Frame(loaded, _BPF, "kernel", None, None))
        symbol = None if place is None else self._lookup.kernel_symbol(place)
        is_core = symbol is not None and symbol[1] == _KERNEL
        if not is_core and self._is_kernel_stale and self.may_reload:
            self._reload_kernel()
            return self.of_kernel(address, wanted)
        if not is_core:
            self._changeable.add(address)
        if place is None or symbol is None:
            return self._frame(Frame(None, _KERNEL, "kernel", _signed(address), None))
        function = self._readable(symbol[0], wanted)
        if function is None:
            return ASKED
        number = self._frame(Frame(function, symbol[1], "kernel", None, None))
        if is_core:
            self._kernel_functions[place] = number
        if function in IDLE_FUNCTIONS:
            self._idle.add(number)
        return number

    def load_kernel_code(self, start: int, length: int, name: str) -> None:
        """Code that the kernel has just got: a BPF program, a trampoline. kallsyms is read too rarely to know it."""
        self._loaded[start, start + length] = name
        while len(self._loaded) > _MOST_LOADED:
            del self._loaded[next(iter(self._loaded))]

    def unload_kernel_code(self, start: int, length: int) -> None:
        self._loaded.pop((start, start + length), None)

    def _loaded_at(self, address: int) -> str | None:
        return next((name for (start, end), name in self._loaded.items() if start <= address < end), None)

    def of_user(self, pid: int, space: AddressSpace, address: int, wanted: Wanted) -> int:
        """The frame of an address in one of the mappings; ASKED if it has to be asked for, which is noted in `wanted`."""
        mapping = space.find(address)
        assert mapping is not None
        if _is_file(mapping.path):
            shift = mapping.start - mapping.file_offset
            space.place(address, shift, self._module(_key(mapping)).frames)
            return self._of_file(pid, mapping, address - shift, wanted)
        if mapping.path == "[vdso]":
            space.place(address, mapping.start, self._vdso)
            number = self._vdso.get(address - mapping.start, ASKED)
            if number == ASKED:
                wanted.vdso.add(address - mapping.start)
            return number
        space.place(address, 0, space.made)
        number = space.made.get(address, ASKED)
        if number == ASKED:
            wanted.made.setdefault(id(space), (pid, space, set()))[2].add(address)
        return number

    def _of_file(self, pid: int, mapping: Mapping, offset: int, wanted: Wanted) -> int:
        key = _key(mapping)
        module = self._module(key)
        number = module.frames.get(offset)
        if number is not None:
            return number
        if not self._functions.knows(key, offset):
            if key not in wanted.blocks:
                wanted.blocks[key] = (pid, self._unknown_blocks(key, mapping) if module.is_asked_often else set())
            wanted.blocks[key][1].add(offset >> BLOCK_BITS)
            return ASKED
        label, build_id = module.label, module.build_id

        def frame(symbol: str) -> int:
            name = self._readable(symbol, wanted)
            return ASKED if name is None else self._frame(Frame(name, label, "user", None, build_id))

        number = self._functions.frame(key, offset, frame)
        if number is None:
            number = self._frame(Frame(None, label, "user", offset, build_id))
        if number != ASKED:
            module.frames[offset] = number
            self._addresses += 1
        return number

    def _unknown_blocks(self, key: ModuleKey, mapping: Mapping) -> set[int]:
        """Of all that is mapped, if that is not too much."""
        end = mapping.file_offset + mapping.end - mapping.start - 1
        blocks = range(mapping.file_offset >> BLOCK_BITS, (end >> BLOCK_BITS) + 1)
        if len(blocks) > _MOST_BLOCKS:
            return set()
        return {block for block in blocks if not self._functions.knows(key, block << BLOCK_BITS)}

    def _readable(self, symbol: str, wanted: Wanted) -> str | None:
        """None if it has to be asked for, which is noted in `wanted`."""
        if not symbol.startswith(MANGLED):
            return symbol
        name = self._demangled.get(symbol)
        if name is None:
            wanted.mangled.add(symbol)
        return name

    def learn(self, wanted: Wanted) -> None:
        """Ask for everything noted: one request per file, one per process with code of its own making."""
        if wanted.blocks:
            self._ask_files(wanted.blocks)
        for pid, space, addresses in wanted.made.values():
            self._ask_jit(pid, space, sorted(addresses))
        if wanted.vdso:
            self._ask_vdso(sorted(wanted.vdso))
        if wanted.mangled:
            symbols = sorted(wanted.mangled)
            self._demangled |= zip(symbols, self._lookup.demangle(symbols), strict=True)

    def bound(self, spaces: Callable[[], Iterable[AddressSpace]]) -> bool:
        """Forget everything once there is too much of it, or some was given for want of an answer; True if that was done."""
        unanswered, self._unanswered = self._unanswered, self._lookup.unanswered
        self._functions.bound()
        self._demangled.clear()  # the frames are made of them
        guessed, self._guessed = self._guessed, []
        # What nobody answered was taken for nameless; it may have a name when it is asked for again. A target that is not asked
        # because it hung stays nameless until it is forgotten.
        if unanswered != self._unanswered:
            self._functions.drop(guessed)
        elif self._addresses + len(self._modules) <= MOST_NAMES:
            return False
        self.forget(spaces())
        return True

    def forget(self, spaces: Iterable[AddressSpace]) -> None:
        """All addresses; the functions they lie in are kept."""
        self._addresses = 0
        self._modules.clear()
        self._vdso.clear()
        self.kernel.clear()
        self._changeable.clear()
        for space in spaces:
            space.forget_places()

    def note_kernel_change(self) -> None:
        """BPF programs or modules came or went: what is not the kernel's own text may mean something else now.

        All symbols are read again, a tenth of a second, only when such an address is sampled and `may_reload` is true:
        a node that starts BPF programs with every unit must not make us read them each time.
        """
        self._is_kernel_stale = True
        self._forget_changeable()

    def _forget_changeable(self) -> None:
        for address in self._changeable:
            self.kernel.pop(address, None)
        self._changeable.clear()

    def _reload_kernel(self) -> None:
        self._lookup.reload_kernel_symbols()
        self._is_kernel_stale = self.may_reload = False
        self._forget_changeable()
        self._kernel_functions.clear()

    def _ask_files(self, blocks_by_file: dict[ModuleKey, tuple[int, set[int]]]) -> None:
        requests = [UserRequest(pid, key[3], *key[:3], tuple(sorted(blocks))) for key, (pid, blocks) in blocks_by_file.items()]
        for request, answer in zip(requests, self._lookup.user_functions(requests), strict=True):
            key = (request.device_major, request.device_minor, request.inode, request.path)
            module = self._module(key)
            module.build_id = module.build_id or (answer and answer.build_id)
            module.questions += 1
            self._add(key, request.blocks, answer and answer.functions)

    def _add(self, owner: Hashable, blocks: Sequence[int], answer: list[FunctionBlock] | None) -> None:
        """Without an answer there are no functions, until it is known why."""
        if answer is None:
            self._guessed += [(owner, block) for block in blocks]
            answer = [NO_FUNCTION] * len(blocks)
        for block, functions in zip(blocks, answer, strict=True):
            self._functions.add(owner, block, functions)

    def _ask_jit(self, pid: int, space: AddressSpace, addresses: list[int]) -> None:
        """Code that a just-in-time compiler made, with its perf map; without one it is unknown."""
        self._addresses += len(addresses)
        for address, name in zip(addresses, self._lookup.jit_symbols(pid, addresses), strict=True):
            space.made[address] = self._frame(Frame(name, "[jit]", "jit", None, None)) if name else self.unknown

    def _ask_vdso(self, offsets: list[int]) -> None:
        for offset, name in zip(offsets, self._lookup.vdso_symbols(offsets), strict=True):
            self._vdso[offset] = self._frame(Frame(name, "[vdso]", "user", None if name else offset, None))

    def _module(self, key: ModuleKey) -> Module:
        module = self._modules.get(key)
        if module is None:
            module = self._modules[key] = Module(clean(os.fsencode(key[3]), 300))
        return module


def _key(mapping: Mapping) -> ModuleKey:
    return mapping.device_major, mapping.device_minor, mapping.inode, mapping.path


def _is_file(path: str) -> bool:
    """Paths in brackets, `//anon` and memory files hold code that was made at run time."""
    return path.startswith("/") and not path.startswith(("//anon", "/memfd:", "/dev/zero", "/anon_hugepage", "/SYSV"))


def _signed(address: int) -> int:
    """Kernel addresses as the signed 64 bits that a column holds."""
    return address - (1 << 64) if address >= 1 << 63 else address
