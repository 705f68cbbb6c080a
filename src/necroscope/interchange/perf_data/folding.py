"""Call chains to numbered stacks: addresses of all new chains are named together, once each, and stacks interned by function."""

from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from necroscope.interchange.capture import NO_PARENT, StackTree, distinct
from necroscope.interchange.number_index import UNKNOWN, NumberIndex
from necroscope.interchange.perf_data.chain_runs import GUEST_USER, KERNEL, USER, runs_of
from necroscope.interchange.perf_data.kernel_names import KernelNames
from necroscope.interchange.perf_data.mappings import Image, Mapping, Mappings
from necroscope.interchange.perf_data.samples import Chains, flat_places
from necroscope.interchange.perf_data.stream import Places, Words
from necroscope.interchange.perf_data.symbol_files import SymbolFiles
from necroscope.interchange.perf_data.tasks import Tasks
from necroscope.model.frame import UNKNOWN_USER, Frame
from necroscope.model.names import clean

_IMAGE_FACTOR: Final = np.uint64(0xD6E8FEB86659FD93)
# Code of an image and address in one number; addresses of user space have 47 bits (57 only where a program asks for it).
_ADDRESS_BITS: Final = 48
_MOST_TABLES: Final = 1 << 16
_NO_MODULE: Final = (1 << 16) - 1
_LOW: Final = np.uint64((1 << _ADDRESS_BITS) - 1)
_UNMAPPED: Final = np.uint64(_NO_MODULE << _ADDRESS_BITS)
_MOST_KNOWN: Final = 500_000
_MODULE_LIMIT: Final = 300
_PIECE_WORDS: Final = 1 << 16
_GUEST: Final = Frame(None, "[guest]", "kernel", None, None)


class _Module(NamedTuple):
    """`pid` only for code that has no file: then offsets are addresses."""

    path: str
    build_id: str | None
    pid: int


class Folder:
    """Numbers for (chain, image). What was numbered before is found by its hash."""

    def __init__(
        self, stacks: StackTree, kernel: KernelNames, files: SymbolFiles, tasks: Tasks, build_ids: dict[str, str]
    ) -> None:
        self._stacks = stacks
        self._kernel = kernel
        self._files = files
        self._tasks = tasks
        self._build_ids = build_ids
        self._known = NumberIndex()
        self._kernel_frames = _FrameNumbers(self._learn_kernel)
        self._user_frames = _FrameNumbers(self._learn_user)
        self._modules: dict[_Module, int] = {}
        self._module_of_file: dict[tuple[str, str | None], int] = {}
        self._module_list: list[_Module] = []
        self._unknown = stacks.frame(UNKNOWN_USER)
        self._guest = stacks.frame(_GUEST)

    def fold(
        self, chains: Chains, chain: Places, image: Places, images: list[Image], times: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int32]:
        """The stack of each sample, given its chain, its place in `images` and its time."""
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        table, tables = _pick_tables(image, images, times)
        numbers = np.array([number for number, _, _ in tables], np.uint64)
        keys: Words = chains.hashes[chain] + numbers[table] * chains.has_user[chain] * _IMAGE_FACTOR
        stacks = self._known.find(keys)
        unknown = np.flatnonzero(stacks == UNKNOWN)
        different, first, inverse = distinct(keys[unknown])
        first = unknown[first]
        new = np.full(len(first), NO_PARENT, np.int32)
        for begin in range(0, len(first), _MOST_TABLES):
            part = first[begin : begin + _MOST_TABLES]
            new[begin : begin + _MOST_TABLES] = self._fold_new(chains, chain[part], table[part], tables)
        is_stack = new != NO_PARENT
        self._known.add(different[is_stack], new[is_stack])
        stacks[unknown] = new[inverse]
        return stacks

    def _fold_new(self, chains: Chains, chain: Places, table: Places, tables: "list[_Numbered]") -> npt.NDArray[np.int32]:
        """Piece by piece, in arrays that stay in the processor's cache; but all new addresses are named together."""
        used, table = np.unique(np.where(chains.has_user[chain], table, 0), return_inverse=True)
        located = self._located([tables[place] for place in used.tolist()])
        starts = (np.cumsum(chains.lengths) - chains.lengths)[chain]
        lengths = chains.lengths[chain]
        bounds = np.flatnonzero(np.diff(np.cumsum(lengths) // _PIECE_WORDS)) + 1
        pieces = [
            _piece_of(chains.addresses[flat_places(starts[a:b], lengths[a:b])], lengths[a:b], table[a:b], located)
            for a, b in pairwise([0, *bounds.tolist(), len(chain)])
        ]
        self._kernel_frames.learn([piece.kernel_keys for piece in pieces])
        self._user_frames.learn([piece.user_keys for piece in pieces])
        return np.concatenate([np.zeros(0, np.int32), *(self._stacks_of(piece) for piece in pieces)])

    def _stacks_of(self, piece: "_Piece") -> npt.NDArray[np.int32]:
        frames = np.full(len(piece.kinds), self._guest, np.int32)
        frames[piece.kinds == KERNEL] = self._kernel_frames.find(piece.kernel_keys)
        frames[piece.kinds == USER] = self._user_frames.find(piece.user_keys)
        frames[piece.kinds == GUEST_USER] = self._unknown
        # Chains lie innermost first and one after the other: backwards, they are outermost first, the last one first.
        return self._stacks.stacks(frames[::-1], piece.lengths[::-1])[::-1]

    def _learn_kernel(self, addresses: Words) -> list[int]:
        listed = addresses.tolist()
        symbols = self._kernel.lookup(listed, self._tasks.kernel_mappings, self._tasks.kernel_symbols)
        return [
            self._stacks.frame(
                Frame(symbol[0], symbol[1], "kernel", None, None)
                if symbol
                else Frame(None, "[kernel]", "kernel", address - (1 << 64) if address >> 63 else address, None)
            )
            for address, symbol in zip(listed, symbols, strict=True)
        ]

    def _learn_user(self, keys: Words) -> list[int]:
        """Keys in order, so that those of one module follow each other; what lies in no module comes last."""
        modules = (keys >> np.uint64(_ADDRESS_BITS)).view(np.int64)
        offsets = (keys & _LOW).tolist()
        begins = np.flatnonzero(np.diff(modules, prepend=-1)).tolist()
        return [
            frame
            for begin, end in pairwise([*begins, len(offsets)])
            for frame in self._module_frames(int(modules[begin]), offsets[begin:end])
        ]

    def _module_frames(self, module_number: int, offsets: list[int]) -> list[int]:
        if module_number == _NO_MODULE:
            return [self._unknown] * len(offsets)
        module, number = self._module_list[module_number], self._stacks.frame
        if module.pid >= 0:
            names = self._files.jit_functions(module.pid, offsets)
            return [number(Frame(name, "[jit]", "jit", None, None)) if name else self._unknown for name in names]
        names = self._files.functions(module.path, module.build_id, offsets)
        label = clean(module.path.encode("utf-8", "surrogateescape"), _MODULE_LIMIT)
        named = {name: number(Frame(name, label, "user", None, module.build_id)) for name in set(names) if name}
        return [
            named[name] if name else number(Frame(None, label, "user", offset, module.build_id))
            for name, offset in zip(names, offsets, strict=True)
        ]

    def _located(self, tables: "list[_Numbered]") -> "_Located":
        """The mappings of all these, one table after the other."""
        mappings = [mapping for table in tables for mapping in table.mappings]
        modules = [number for table in tables for number in self._modules_of(table)]
        codes = np.repeat(np.arange(len(tables), dtype=np.uint64), [len(table.mappings) for table in tables])
        starts, ends, file_offsets, _, _ = zip(*mappings, strict=True) if mappings else ((),) * 5
        return _Located(
            _with_code(np.array(starts, np.uint64), codes),
            _with_code(np.array(ends, np.uint64), codes),
            np.array(file_offsets, np.uint64),
            np.array(modules, np.uint64) << np.uint64(_ADDRESS_BITS),
            np.array([self._is_jit(number) for number in modules], bool),
        )

    def _is_jit(self, module: int) -> bool:
        return module != _NO_MODULE and self._module_list[module].pid >= 0

    def _modules_of(self, numbered: "_Numbered") -> list[int]:
        known = self._module_of_file
        found = [known.get((mapping.path, mapping.build_id), _NO_MODULE) for mapping in numbered.mappings]
        if _NO_MODULE in found:
            found = [self._module(mapping, numbered.pid) for mapping in numbered.mappings]
        return found

    def _module(self, mapping: Mapping, pid: int) -> int:
        is_file = _is_file(mapping.path)
        module = (
            _Module(mapping.path, mapping.build_id or self._build_ids.get(mapping.path), -1)
            if is_file
            else _Module("", None, pid)
        )
        number = self._modules.get(module)
        if number is None:
            if len(self._module_list) >= _NO_MODULE:
                return _NO_MODULE
            number = self._modules[module] = len(self._module_list)
            self._module_list.append(module)
            if is_file:
                self._module_of_file[mapping.path, mapping.build_id] = number
        return number


class _Numbered(NamedTuple):
    """A generation of an image, with a number that no other has."""

    number: int
    pid: int
    mappings: Mappings


class _Located(NamedTuple):
    """Mappings in the order of their table and address; starts and ends have the number of the table in their upper bits."""

    starts: Words
    ends: Words
    file_offsets: Words
    modules: Words
    is_jit: npt.NDArray[np.bool_]

    def keys(self, addresses: Words, table: Places) -> Words:
        """Module and offset of each address: the offset in the file, or the address itself where there is no file."""
        if not len(self.starts):
            return np.full(len(addresses), _UNMAPPED, np.uint64)
        at = _with_code(addresses, table.view(np.uint64))
        place = np.searchsorted(self.starts, at, "right") - 1
        offsets = np.where(self.is_jit[place], at, at - self.starts[place] + self.file_offsets[place])
        return np.where((place >= 0) & (at < self.ends[place]), self.modules[place] | offsets & _LOW, _UNMAPPED)


class _Piece(NamedTuple):
    """Some chains without their marks: the kind of each address, and what its function is found by."""

    lengths: Places
    kinds: npt.NDArray[np.int8]
    kernel_keys: Words
    user_keys: Words


def _piece_of(addresses: Words, lengths: Places, table: Places, located: _Located) -> _Piece:
    runs = runs_of(addresses, lengths)
    # All but the innermost are return addresses, which lie behind their call: one less lies in it.
    lookups = addresses - (addresses != 0)
    lookups[runs.innermost] = addresses[runs.innermost]
    kept = ~runs.is_mark
    kinds, lookups = runs.kinds[kept], lookups[kept]
    lengths = lengths - runs.marks
    is_user = kinds == USER
    user_keys = located.keys(lookups[is_user], np.repeat(table, lengths)[is_user])
    return _Piece(lengths, kinds, lookups[kinds == KERNEL], user_keys)


class _FrameNumbers:
    """The frame of each key; those that are new are learned together."""

    def __init__(self, learn: Callable[[Words], list[int]]) -> None:
        self._index = NumberIndex()
        self._learn = learn

    def learn(self, parts: list[Words]) -> None:
        if len(self._index) > _MOST_KNOWN:
            self._index.clear()
        unknown = [part[self._index.find(part) == UNKNOWN] for part in parts]
        new = np.unique(np.concatenate([np.zeros(0, np.uint64), *unknown]))
        if len(new):
            self._index.add(new, np.array(self._learn(new), np.int32))

    def find(self, keys: Words) -> npt.NDArray[np.int32]:
        return self._index.find(keys)


def _pick_tables(image: Places, images: list[Image], times: npt.NDArray[np.int64]) -> tuple[Places, list[_Numbered]]:
    """The mappings in force for each sample: those of its image, of the generation of its time."""
    used, codes = np.unique(image, return_inverse=True)
    tables: list[_Numbered] = []
    firsts = np.zeros(len(used), np.int64)
    several: list[tuple[int, list[int]]] = []
    for code, place in enumerate(used.tolist()):
        image_used = images[place]
        generations = image_used.generations()
        firsts[code] = len(tables)
        last = len(generations) - 1
        # The last generation is the first of the next batch: both must have one number.
        tables += [
            _Numbered(image_used.number * 128 + last - i, image_used.pid, mappings) for i, (_, mappings) in enumerate(generations)
        ]
        if last:
            several.append((code, [since for since, _ in generations]))
    table = firsts[codes]
    for code, begins in several:
        chosen = np.flatnonzero(codes == code)
        table[chosen] += np.maximum(np.searchsorted(begins, times[chosen], "right") - 1, 0)
    return table, tables


def _with_code(addresses: Words, codes: Words) -> Words:
    low: Words = np.minimum(addresses, _LOW)
    return low + (codes << np.uint64(_ADDRESS_BITS))


def _is_file(path: str) -> bool:
    """Paths in brackets (but the vdso), `//anon` and memory files hold code that was made at run time."""
    if path == "[vdso]":
        return True
    return path.startswith("/") and not path.startswith(("//anon", "/memfd:", "/dev/zero", "/anon_hugepage", "/SYSV"))
