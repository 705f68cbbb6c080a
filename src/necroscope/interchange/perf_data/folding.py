"""Call chains to numbered stacks: addresses of all new chains are named together, once each, and stacks interned by function.

In two steps, between which others can be begun: names are found by another process."""

from collections import deque
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from necroscope.interchange.capture import NO_PARENT, StackTree, distinct
from necroscope.interchange.number_index import UNKNOWN, NumberIndex
from necroscope.interchange.perf_data.chain_runs import GUEST_USER, KERNEL, USER, runs_of
from necroscope.interchange.perf_data.frame_names import Module, Question
from necroscope.interchange.perf_data.mappings import Image, Mapping, Mappings
from necroscope.interchange.perf_data.naming import Naming
from necroscope.interchange.perf_data.samples import Chains, flat_places
from necroscope.interchange.perf_data.stream import Places, Words
from necroscope.interchange.perf_data.tasks import Tasks
from necroscope.model.frame import UNKNOWN_USER, Frame

_IMAGE_FACTOR: Final = np.uint64(0xD6E8FEB86659FD93)
# Code of an image and address in one number; addresses of user space have 47 bits (57 only where a program asks for it).
_ADDRESS_BITS: Final = 48
_MOST_TABLES: Final = 1 << 16
_NO_MODULE: Final = (1 << 16) - 1
_LOW: Final = np.uint64((1 << _ADDRESS_BITS) - 1)
_UNMAPPED: Final = np.uint64(_NO_MODULE << _ADDRESS_BITS)
_MOST_KNOWN: Final = 500_000
_NOWHERE: Final = Module("", None, -1)
_PIECE_WORDS: Final = 1 << 16
_GUEST: Final = Frame(None, "[guest]", "kernel", None, None)


class Folding(NamedTuple):
    """Samples whose new chains wait for the names of their addresses: `unknown` are their places, `keys` the chains."""

    stacks: npt.NDArray[np.int32]
    unknown: Places
    keys: Words
    inverse: Places
    pieces: "list[_Piece]"
    kernel: "_Addresses"
    user: "_Addresses"


class Folder:
    """Numbers for (chain, image). What was numbered before is found by its hash."""

    def __init__(self, stacks: StackTree, naming: Naming, tasks: Tasks, build_ids: dict[str, str]) -> None:
        self._stacks = stacks
        self._naming = naming
        self._tasks = tasks
        self._build_ids = build_ids
        self._known = NumberIndex()
        self._kernel = _Addresses()
        self._user = _Addresses()
        self._modules: dict[Module, int] = {}
        self._module_of_file: dict[tuple[str, str | None], int] = {}
        self._module_list: list[Module] = []
        self._unknown = stacks.frame(UNKNOWN_USER)
        self._guest = stacks.frame(_GUEST)

    def begin(self, chains: Chains, chain: Places, image: Places, images: list[Image], times: npt.NDArray[np.int64]) -> Folding:
        """Ask for the names that samples need, given the chain of each, its place in `images` and its time."""
        self._forget()
        table, tables = _pick_tables(image, images, times)
        numbers = np.array([number for number, _, _ in tables], np.uint64)
        keys: Words = chains.hashes[chain] + numbers[table] * chains.has_user[chain] * _IMAGE_FACTOR
        stacks = self._known.find(keys)
        unknown = np.flatnonzero(stacks == UNKNOWN)
        different, first, inverse = distinct(keys[unknown])
        first = unknown[first]
        parts = [first[begin : begin + _MOST_TABLES] for begin in range(0, len(first), _MOST_TABLES)]
        pieces = [piece for part in parts for piece in self._pieces(chains, chain[part], table[part], tables)]
        self._ask()
        return Folding(stacks, unknown, different, inverse, pieces, self._kernel, self._user)

    def finish(self, folding: Folding) -> npt.NDArray[np.int32]:
        """The stack of each sample. What was begun first is to be finished first."""
        answer = self._naming.answer()
        frames = np.array([self._stacks.frame(frame) for frame in answer.different], np.int32)[answer.places]
        folding.user.take_in(folding.kernel.take_in(frames))
        found = np.concatenate([np.zeros(0, np.int32), *(self._stacks_of(piece, folding) for piece in folding.pieces)])
        # Chains of two that were begun together may be the same.
        new = np.flatnonzero((self._known.find(folding.keys) == UNKNOWN) & (found != NO_PARENT))
        self._known.add(folding.keys[new], found[new])
        folding.stacks[folding.unknown] = found[folding.inverse]
        return folding.stacks

    def _forget(self) -> None:
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        if len(self._kernel) + len(self._user) > _MOST_KNOWN:
            self._kernel, self._user = _Addresses(), _Addresses()

    def _pieces(self, chains: Chains, chain: Places, table: Places, tables: "list[_Numbered]") -> "list[_Piece]":
        """Arrays that stay in the processor's cache."""
        used, table = np.unique(np.where(chains.has_user[chain], table, 0), return_inverse=True)
        located = self._located([tables[place] for place in used.tolist()])
        starts = (np.cumsum(chains.lengths) - chains.lengths)[chain]
        lengths = chains.lengths[chain]
        bounds = np.flatnonzero(np.diff(np.cumsum(lengths) // _PIECE_WORDS)) + 1
        return [
            self._piece(chains.addresses[flat_places(starts[a:b], lengths[a:b])], lengths[a:b], table[a:b], located)
            for a, b in pairwise([0, *bounds.tolist(), len(chain)])
        ]

    def _piece(self, addresses: Words, lengths: Places, table: Places, located: "_Located") -> "_Piece":
        runs = runs_of(addresses, lengths)
        # All but the innermost are return addresses, which lie behind their call: one less lies in it.
        lookups = addresses - (addresses != 0)
        lookups[runs.innermost] = addresses[runs.innermost]
        kept = ~runs.is_mark
        kinds, lookups = runs.kinds[kept], lookups[kept]
        lengths = lengths - runs.marks
        is_user = kinds == USER
        user_keys = located.keys(lookups[is_user], np.repeat(table, lengths)[is_user])
        return _Piece(lengths, kinds, self._kernel.numbers(lookups[kinds == KERNEL]), self._user.numbers(user_keys))

    def _ask(self) -> None:
        kernel, user = self._kernel.take_new(), self._user.take_new()
        modules = (user >> np.uint64(_ADDRESS_BITS)).view(np.int64)
        offsets = (user & _LOW).tolist()
        begins = np.flatnonzero(np.diff(modules, prepend=-1)).tolist()
        wanted = [(self._module_at(int(modules[a])), offsets[a:b]) for a, b in pairwise([*begins, len(offsets)])]
        self._naming.ask(Question(kernel.tolist(), wanted, self._tasks.kernel_mappings, self._tasks.kernel_symbols))

    def _module_at(self, number: int) -> Module:
        return _NOWHERE if number == _NO_MODULE else self._module_list[number]

    def _stacks_of(self, piece: "_Piece", folding: Folding) -> npt.NDArray[np.int32]:
        frames = np.full(len(piece.kinds), self._guest, np.int32)
        frames[piece.kinds == KERNEL] = folding.kernel.frames[piece.kernel]
        frames[piece.kinds == USER] = folding.user.frames[piece.user]
        frames[piece.kinds == GUEST_USER] = self._unknown
        # Chains lie innermost first and one after the other: backwards, they are outermost first, the last one first.
        return self._stacks.stacks(frames[::-1], piece.lengths[::-1])[::-1]

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
        found = [known.get((path, build_id)) for _, _, _, path, build_id in numbered.mappings]
        return [
            self._module(mapping, numbered.pid) if number is None else number
            for number, mapping in zip(found, numbered.mappings, strict=True)
        ]

    def _module(self, mapping: Mapping, pid: int) -> int:
        is_file = _is_file(mapping.path)
        module = (
            Module(mapping.path, mapping.build_id or self._build_ids.get(mapping.path), -1) if is_file else Module("", None, pid)
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
    """Some chains without their marks: the kind of each address, and the numbers of those of the kernel and of users."""

    lengths: Places
    kinds: npt.NDArray[np.int8]
    kernel: npt.NDArray[np.int32]
    user: npt.NDArray[np.int32]


class _Addresses:
    """Numbers of addresses by their keys, and the frame of each, once it is told."""

    def __init__(self) -> None:
        self.frames = np.zeros(0, np.int32)
        self._index = NumberIndex()
        self._new: list[Words] = []
        self._asked: deque[Places] = deque()

    def __len__(self) -> int:
        return len(self._index)

    def numbers(self, keys: Words) -> npt.NDArray[np.int32]:
        found = self._index.find(keys)
        unknown = np.flatnonzero(found == UNKNOWN)
        if len(unknown):
            new, _, inverse = distinct(keys[unknown])
            numbers = np.arange(len(self._index), len(self._index) + len(new), dtype=np.int32)
            self._index.add(new, numbers)
            self._new.append(new)
            found[unknown] = numbers[inverse]
        return found

    def take_new(self) -> Words:
        """What was numbered since, to be asked about, in order."""
        new = np.concatenate([np.zeros(0, np.uint64), *self._new])
        self._new.clear()
        order = np.argsort(new)
        self._asked.append(order)
        return new[order]

    def take_in(self, frames: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The answer to the oldest question; what is not of it is returned."""
        order = self._asked.popleft()
        told = np.zeros(len(order), np.int32)
        told[order] = frames[: len(order)]
        self.frames = np.concatenate([self.frames, told])
        return frames[len(order) :]


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
