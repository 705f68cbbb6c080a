"""Call chains to numbered stacks: addresses of all new chains are named together, once each, and stacks interned by function."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from necroscope.interchange.capture import StackTree, distinct
from necroscope.interchange.perf_data.kernel_names import KernelNames
from necroscope.interchange.perf_data.mappings import Image, Mapping, Mappings
from necroscope.interchange.perf_data.samples import Chains, flat_places
from necroscope.interchange.perf_data.stream import Places, Words
from necroscope.interchange.perf_data.symbol_files import SymbolFiles
from necroscope.interchange.perf_data.tasks import Tasks
from necroscope.model.frame import UNKNOWN_USER, Frame
from necroscope.model.names import clean
from necroscope.perf_abi.event_attr import CONTEXT_HV, CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER
from necroscope.perf_abi.sample_layout import CONTEXT_GUEST_USER

_IMAGE_FACTOR: Final = np.uint64(0xD6E8FEB86659FD93)
# Code of an image and address in one number; addresses of user space have 47 bits (57 only where a program asks for it).
_ADDRESS_BITS: Final = 48
_MOST_IMAGES: Final = 1 << 16
_LARGEST_OFFSET: Final = (1 << 62) - 1
_MOST_KNOWN: Final = 500_000
_MODULE_LIMIT: Final = 300
_GUEST: Final = Frame(None, "[guest]", "kernel", None, None)


class _Module(NamedTuple):
    """`pid` only for code that has no file: then offsets are addresses."""

    path: str
    build_id: str | None
    pid: int


class Folder:
    """Numbers for (chain, image). What was numbered before costs one dictionary look-up."""

    def __init__(
        self, stacks: StackTree, kernel: KernelNames, files: SymbolFiles, tasks: Tasks, build_ids: dict[str, str]
    ) -> None:
        self._stacks = stacks
        self._kernel = kernel
        self._files = files
        self._tasks = tasks
        self._build_ids = build_ids
        self._known: dict[int, int] = {}
        self._kernel_frames: dict[int, int] = {}
        self._modules: dict[_Module, int] = {}
        self._module_of_file: dict[tuple[str, str | None], int] = {}
        self._module_list: list[_Module] = []
        self._module_frames: list[dict[int, int]] = []
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
        has_user = _has_user(chains)
        keys: Words = chains.hashes[chain] + numbers[table] * has_user[chain] * _IMAGE_FACTOR
        different, first, inverse = distinct(keys)
        found = [self._known.get(key, -2) for key in different.tolist()]
        stacks = np.array(found, np.int32)
        new = np.flatnonzero(stacks == -2)
        for begin in range(0, len(new), _MOST_IMAGES - 1):
            part = new[begin : begin + _MOST_IMAGES - 1]
            stacks[part] = self._fold_new(chains, chain[first[part]], table[first[part]], tables)
        self._known.update(zip(different[new].tolist(), stacks[new].tolist(), strict=True))
        return stacks[inverse]

    def _fold_new(self, chains: Chains, chain: Places, table: Places, tables: "list[_Numbered]") -> npt.NDArray[np.int32]:
        starts = np.cumsum(chains.lengths) - chains.lengths
        lengths = chains.lengths[chain]
        addresses = chains.addresses[flat_places(starts[chain], lengths)]
        owner = np.repeat(np.arange(len(chain)), lengths)
        is_mark = addresses >= np.uint64(CONTEXT_MAX)
        contexts = _contexts(addresses, is_mark, owner)
        # All but the innermost are return addresses, which lie behind their call: one less lies in it.
        is_innermost = np.ones(len(addresses), bool)
        is_innermost[1:] = is_mark[:-1] | (owner[1:] != owner[:-1])
        kept = np.flatnonzero(~is_mark)
        contexts, owner = contexts[kept], owner[kept]
        addresses = addresses[kept] - (~is_innermost[kept] & (addresses[kept] != 0)).astype(np.uint64)
        frames = np.full(len(kept), self._guest, np.int32)
        is_user = contexts == np.uint64(CONTEXT_USER)
        is_kernel = (contexts == np.uint64(CONTEXT_KERNEL)) | (contexts == np.uint64(CONTEXT_HV))
        frames[is_kernel] = self._kernel_numbers(addresses[is_kernel])
        frames[is_user] = self._user_numbers(addresses[is_user], table[owner[is_user]], tables)
        frames[contexts == np.uint64(CONTEXT_GUEST_USER)] = self._unknown
        # Chains lie innermost first and one after the other: backwards, they are outermost first, the last one first.
        return self._stacks.stacks(frames[::-1], np.bincount(owner, minlength=len(chain))[::-1])[::-1]

    def _kernel_numbers(self, addresses: Words) -> npt.NDArray[np.int32]:
        def learn(unknown: list[int]) -> list[int]:
            symbols = self._kernel.lookup(unknown, self._tasks.kernel_mappings, self._tasks.kernel_symbols)
            return [
                self._stacks.frame(
                    Frame(symbol[0], symbol[1], "kernel", None, None)
                    if symbol
                    else Frame(None, "[kernel]", "kernel", address - (1 << 64) if address >> 63 else address, None)
                )
                for address, symbol in zip(unknown, symbols, strict=True)
            ]

        return _number(addresses, self._kernel_frames, learn)

    def _user_numbers(self, addresses: Words, table: Places, tables: "list[_Numbered]") -> npt.NDArray[np.int32]:
        """Mapping of each (image, address), then function of each (module, offset)."""
        keys, inverse = np.unique(
            (table.astype(np.uint64) << np.uint64(_ADDRESS_BITS)) | np.minimum(addresses, np.uint64((1 << _ADDRESS_BITS) - 1)),
            return_inverse=True,
        )
        modules, offsets = self._locate(keys, tables)
        frames = np.full(len(keys), self._unknown, np.int32)
        order = np.argsort(modules, kind="stable")
        bounds = np.searchsorted(modules[order], np.arange(len(self._module_list) + 1))
        for module in np.unique(modules[modules >= 0]).tolist():
            places = order[bounds[module] : bounds[module + 1]]
            frames[places] = self._module_numbers(module, offsets[places])
        return frames[inverse]

    def _locate(self, keys: Words, tables: "list[_Numbered]") -> tuple[Places, Places]:
        """Module (-1 for none) and file offset of addresses whose upper bits say which table they belong to."""
        used = np.unique(keys >> np.uint64(_ADDRESS_BITS)).tolist()
        mappings = [mapping for code in used for mapping in tables[code].mappings]
        if not mappings:
            return np.full(len(keys), -1, np.int64), np.zeros(len(keys), np.int64)
        codes = np.repeat(np.array(used, np.uint64), [len(tables[code].mappings) for code in used])
        starts = _with_code(np.array([mapping.start for mapping in mappings], np.uint64), codes)
        ends = _with_code(np.array([mapping.end for mapping in mappings], np.uint64), codes)
        file_offsets = np.array([min(mapping.file_offset, _LARGEST_OFFSET) for mapping in mappings], np.int64)
        modules = np.array([number for code in used for number in self._modules_of(tables[code])], np.int64)
        place = np.searchsorted(starts, keys, "right") - 1
        covered = (place >= 0) & (keys < ends[place])
        module = np.where(covered, modules[place], -1)
        low = np.uint64((1 << _ADDRESS_BITS) - 1)
        by_file = (keys - starts[place]).view(np.int64) + file_offsets[place]
        is_jit = np.array([item.pid >= 0 for item in self._module_list], bool)
        return module, np.where(is_jit[module], (keys & low).view(np.int64), by_file)

    def _modules_of(self, numbered: "_Numbered") -> list[int]:
        known = self._module_of_file
        found = [known.get((mapping.path, mapping.build_id), -1) for mapping in numbered.mappings]
        if -1 in found:
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
            number = self._modules[module] = len(self._module_list)
            self._module_list.append(module)
            self._module_frames.append({})
            if is_file:
                self._module_of_file[mapping.path, mapping.build_id] = number
        return number

    def _module_numbers(self, number: int, offsets: Places) -> npt.NDArray[np.int32]:
        module = self._module_list[number]

        def learn(unknown: list[int]) -> list[int]:
            if module.pid >= 0:
                names = self._files.jit_functions(module.pid, unknown)
                return [self._stacks.frame(Frame(name, "[jit]", "jit", None, None) if name else UNKNOWN_USER) for name in names]
            names = self._files.functions(module.path, module.build_id, unknown)
            label = clean(module.path.encode("utf-8", "surrogateescape"), _MODULE_LIMIT)
            number = self._stacks.frame
            named = {name: number(Frame(name, label, "user", None, module.build_id)) for name in set(names) if name}
            return [
                named[name] if name else number(Frame(None, label, "user", offset, module.build_id))
                for name, offset in zip(names, unknown, strict=True)
            ]

        return _number(offsets, self._module_frames[number], learn)


class _Numbered(NamedTuple):
    """A generation of an image, with a number that no other has."""

    number: int
    pid: int
    mappings: Mappings


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


def _has_user(chains: Chains) -> npt.NDArray[np.bool_]:
    """Whether a chain has user frames: only then its image matters."""
    owner = np.repeat(np.arange(len(chains.lengths)), chains.lengths)
    found = np.zeros(len(chains.lengths), bool)
    found[owner[chains.addresses == np.uint64(CONTEXT_USER)]] = True
    # A chain without marks is judged by its addresses.
    found[owner[chains.addresses < np.uint64(1 << 63)]] = True
    return found


def _contexts(addresses: Words, is_mark: npt.NDArray[np.bool_], owner: Places) -> Words:
    """The context mark in force at each place; without one, the half of the address space decides."""
    last = np.maximum.accumulate(np.where(is_mark, np.arange(len(addresses)), -1))
    has_mark = (last >= 0) & (owner[last] == owner)
    by_half = np.where(addresses >= np.uint64(1 << 63), np.uint64(CONTEXT_KERNEL), np.uint64(CONTEXT_USER))
    return np.where(has_mark, addresses[last], by_half)


def _number(values: Words | Places, known: dict[int, int], learn: Callable[[list[int]], list[int]]) -> npt.NDArray[np.int32]:
    """The frame number of each value, learning those that are new together."""
    different, inverse = np.unique(values, return_inverse=True)
    listed = different.tolist()
    unknown = [value for value in listed if value not in known]
    if unknown:
        if len(known) > _MOST_KNOWN:
            known.clear()
            unknown = listed
        known.update(zip(unknown, learn(unknown), strict=True))
    return np.array([known[value] for value in listed], np.int32)[inverse]


def _with_code(addresses: Words, codes: Words) -> Words:
    low: Words = np.minimum(addresses, np.uint64((1 << _ADDRESS_BITS) - 1))
    return low + (codes << np.uint64(_ADDRESS_BITS))


def _is_file(path: str) -> bool:
    """Paths in brackets (but the vdso), `//anon` and memory files hold code that was made at run time."""
    if path == "[vdso]":
        return True
    return path.startswith("/") and not path.startswith(("//anon", "/memfd:", "/dev/zero", "/anon_hugepage", "/SYSV"))
