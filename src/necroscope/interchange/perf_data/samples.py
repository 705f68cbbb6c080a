"""Samples of a block as columns: a field is gathered for all samples of one layout at once, chains are found by their hash."""

from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from necroscope.interchange.capture import distinct, odd_numbers
from necroscope.interchange.perf_data.chain_runs import UPPER_HALF
from necroscope.interchange.perf_data.format import MISC_CPUMODE_MASK, MISC_GUEST_KERNEL, MISC_GUEST_USER, MISC_KERNEL
from necroscope.interchange.perf_data.header import FileHeader
from necroscope.interchange.perf_data.stream import Places, Words
from necroscope.perf_abi.event_attr import (
    CONTEXT_KERNEL,
    CONTEXT_USER,
    SAMPLE_CALLCHAIN,
    SAMPLE_CPU,
    SAMPLE_IP,
    SAMPLE_RAW,
    SAMPLE_REGS_USER,
    SAMPLE_TID,
    SAMPLE_TIME,
)
from necroscope.perf_abi.sample_layout import (
    BRANCH_COUNTERS,
    BRANCH_HW_INDEX,
    CONTEXT_GUEST_KERNEL,
    CONTEXT_GUEST_USER,
    SAMPLE_BRANCH_STACK,
    SAMPLE_CGROUP,
    SAMPLE_DATA_SRC,
    SAMPLE_PERIOD,
    SAMPLE_PHYS_ADDR,
    SAMPLE_READ,
    SAMPLE_REGS_INTR,
    SAMPLE_STACK_USER,
    SAMPLE_TRANSACTION,
    SAMPLE_WEIGHT,
    SAMPLE_WEIGHT_STRUCT,
    SampleLayout,
)

_LOW: Final = np.uint64(0xFFFFFFFF)
_SIZE_SHIFT: Final = np.uint64(48)
_HALF: Final = np.uint64(32)
_RECORD_WORDS: Final = 8192
# The instruction pointer among the registers of `arch/*/include/uapi/asm/perf_regs.h`, by the name that uname has for it.
_IP_REGISTER: Final = {"x86_64": 8, "aarch64": 32}
_MULTIPLIERS: Final = odd_numbers(_RECORD_WORDS + 3)
_LENGTH_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(slots=True)
class Chains:
    """Distinct call chains: addresses and context marks of all of them in one array, innermost first.

    `has_user` is whether a chain has user frames: only then it matters whose it is.
    """

    hashes: Words
    addresses: Words
    lengths: Places
    has_user: npt.NDArray[np.bool_]

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        return cls(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(cls)))

    @classmethod
    def none(cls) -> Self:
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, bool))


@dataclass(slots=True)
class Samples:
    """Columns of the samples of a block, in the order of the file; `chain` is a place in `chains`."""

    time: npt.NDArray[np.int64]
    pid: npt.NDArray[np.int32]
    tid: npt.NDArray[np.int32]
    cpu: npt.NDArray[np.int32]
    event: npt.NDArray[np.int32]
    period: npt.NDArray[np.int64]
    cgroup: npt.NDArray[np.int64]
    chain: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.time)

    def take(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Self:
        return type(self)(*(getattr(self, column.name)[chosen] for column in fields(self)))

    @classmethod
    def none(cls) -> Self:
        small, large = np.zeros(0, np.int32), np.zeros(0, np.int64)
        return cls(large, small, small, small, small, large, large, large)

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        return cls(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(cls)))


class SampleDecoder:
    """Samples that do not fit their record, or whose event is not described, are left out and counted in `malformed`."""

    def __init__(self, header: FileHeader, arch: str | None, *, has_time: bool) -> None:
        self.malformed = 0
        self._has_time = has_time
        self._layouts = [event.layout for event in header.events]
        self._ip_register = _IP_REGISTER.get(arch or "", 64)
        self._ids = np.array(sorted(header.event_of_id), np.uint64)
        self._events = np.array([header.event_of_id[number] for number in sorted(header.event_of_id)], np.int32)

    def decode(
        self, words: Words, starts: Places, window: tuple[int, int] | None, sequence: int
    ) -> tuple[Samples, Chains, npt.NDArray[np.int64]]:
        """Columns and chains of the samples within the window of file times, and the times of all.

        Where samples have no time, `sequence` plus their place in the block stands for it.
        """
        events = self._event_of(words, starts)
        parts: list[tuple[Samples, _Spans]] = []
        all_times: list[npt.NDArray[np.int64]] = []
        for layout in dict.fromkeys(self._layouts[event] for event in np.unique(events[events >= 0]).tolist()):
            same = np.array([self._layouts[event] == layout for event in range(len(self._layouts))])
            chosen = np.flatnonzero((events >= 0) & same[events])
            parts.append(self._decode_layout(words, starts[chosen], events[chosen], layout, window, sequence, all_times))
        if not parts:
            return Samples.none(), Chains.none(), np.zeros(0, np.int64)
        samples = Samples.join([part for part, _ in parts]) if len(parts) > 1 else parts[0][0]
        chains, samples.chain = _distinct(words, [spans for _, spans in parts])
        return samples, chains, np.concatenate(all_times)

    def _event_of(self, words: Words, starts: Places) -> npt.NDArray[np.int32]:
        if len(self._layouts) == 1:
            return np.zeros(len(starts), np.int32)
        position = self._layouts[0].id_position
        if position is None or not len(self._ids):
            return np.zeros(len(starts), np.int32)
        ids = words[(starts + position).clip(max=len(words) - 1)]
        places = np.searchsorted(self._ids, ids).clip(max=len(self._ids) - 1)
        found = np.where(self._ids[places] == ids, self._events[places], -1)
        self.malformed += int((found < 0).sum())
        return found.astype(np.int32)

    def _decode_layout(
        self,
        words: Words,
        starts: Places,
        events: npt.NDArray[np.int32],
        layout: SampleLayout,
        window: tuple[int, int] | None,
        sequence: int,
        all_times: list[npt.NDArray[np.int64]],
    ) -> "tuple[Samples, _Spans]":
        ends = starts + (words[starts] >> _SIZE_SHIFT).astype(np.int64) // 8
        fits = starts + layout.head_words <= ends
        time_position = layout.position(SAMPLE_TIME)
        if self._has_time and time_position is not None:
            times = words[np.where(fits, starts + time_position, starts)].view(np.int64)
            fits &= times >= 0
        else:
            times = starts + sequence
        all_times.append(times[fits])
        inside = fits if window is None else fits & (times >= window[0]) & (times < window[1])
        self.malformed += len(fits) - int(fits.sum())
        starts, ends, events, times = starts[inside], ends[inside], events[inside], times[inside]
        cursor = _Cursor(words, starts + layout.head_words, ends)
        spans = self._walk(cursor, starts, layout)
        samples = _columns(words, starts, layout, times, events, cursor.cgroup(layout))
        if not cursor.valid.all():
            self.malformed += int((~cursor.valid).sum())
            samples, spans = samples.take(cursor.valid), spans.take(cursor.valid)
        return samples, spans

    def _walk(self, cursor: "_Cursor", starts: Places, layout: SampleLayout) -> "_Spans":
        """Past the fields of variable size, as far as something of use comes."""
        cursor.skip_read(layout)
        if layout.has(SAMPLE_CALLCHAIN):
            chain_starts, lengths = cursor.counted(1)
        else:
            chain_starts, lengths = starts, np.zeros(len(starts), np.int64)
        spans = _Spans(chain_starts, lengths, np.zeros((len(starts), 2), np.uint64))
        if not layout.has(SAMPLE_CALLCHAIN) and layout.has(SAMPLE_IP):
            spans.extra[:] = _innermost(cursor.words, starts, layout)
        if layout.has(SAMPLE_REGS_USER) or layout.has(SAMPLE_CGROUP):
            cursor.skip_raw_and_branches(layout)
        if layout.has(SAMPLE_REGS_USER):
            self._add_user_register(cursor, spans, layout)
        return spans

    def _add_user_register(self, cursor: "_Cursor", spans: "_Spans", layout: SampleLayout) -> None:
        """With `--call-graph dwarf` the kernel leaves user frames out; of the copied stack we know the innermost frame alone."""
        registers_at, has_registers = cursor.skip_registers(layout.user_registers)
        mask = layout.user_registers
        if not mask >> self._ip_register & 1 or not layout.has(SAMPLE_STACK_USER):
            return
        place = bin(mask & (1 << self._ip_register) - 1).count("1")
        address = cursor.words[np.where(has_registers, registers_at + place, 0).clip(max=len(cursor.words) - 1)]
        spans.extra[has_registers, 0] = CONTEXT_USER
        spans.extra[has_registers, 1] = address[has_registers]


@dataclass(slots=True)
class _Spans:
    """Where each sample's chain lies, and a mark and an address to add at its end (0 for none)."""

    starts: Places
    lengths: Places
    extra: Words

    def take(self, chosen: npt.NDArray[np.bool_]) -> "_Spans":
        return _Spans(self.starts[chosen], self.lengths[chosen], self.extra[chosen])


class _Cursor:
    """A place in each of many samples; `valid` turns False for those whose fields lead outside of their record."""

    def __init__(self, words: Words, at: Places, ends: Places) -> None:
        self.words = words
        self.at = at
        self.ends = ends
        self.valid = np.ones(len(at), bool)

    def _word(self) -> Words:
        inside = self.at < self.ends
        self.valid &= inside
        return self.words[np.where(inside, self.at, 0)]

    def _advance(self, counts: Places | int) -> None:
        self.at = self.at + counts
        self.valid &= self.at <= self.ends
        self.at = np.where(self.valid, self.at, self.ends)

    def _small(self, values: Words) -> Places:
        """A count or size from the file: what cannot fit in any record is a lie."""
        possible = values <= np.uint64(_RECORD_WORDS * 8)
        self.valid &= possible
        return np.where(possible, values, np.uint64(0)).astype(np.int64)

    def counted(self, width: int, extra: int = 0) -> tuple[Places, Places]:
        """A count and so many times `width` words; returns where they start and how many there are."""
        counts = self._small(self._word())
        first = self.at + 1 + extra
        self._advance(1 + extra + counts * width)
        return first, np.where(self.valid, counts, 0)

    def skip_read(self, layout: SampleLayout) -> None:
        if layout.has(SAMPLE_READ):
            fixed, each = layout.read_words
            if each:
                self.counted(each, fixed - 1)
            else:
                self._advance(fixed)

    def skip_raw_and_branches(self, layout: SampleLayout) -> None:
        if layout.has(SAMPLE_RAW):
            self._advance((self._small(self._word() & _LOW) + 11) // 8)
        if layout.has(SAMPLE_BRANCH_STACK):
            width = 4 if layout.branch_sample_type & BRANCH_COUNTERS else 3
            self.counted(width, 1 if layout.branch_sample_type & BRANCH_HW_INDEX else 0)

    def skip_registers(self, mask: int) -> tuple[Places, npt.NDArray[np.bool_]]:
        """The ABI word, and the registers unless it is 0 (a kernel thread has none)."""
        has_registers = self._word() != 0
        at = self.at + 1
        self._advance(1 + has_registers * bin(mask).count("1"))
        return at, has_registers & self.valid

    def cgroup(self, layout: SampleLayout) -> npt.NDArray[np.int64]:
        """The cgroup id, which comes after nearly everything else."""
        if not layout.has(SAMPLE_CGROUP):
            return np.full(len(self.at), -1, np.int64)
        if layout.has(SAMPLE_STACK_USER):
            sizes = self._small(self._word())
            self._advance(1 + sizes // 8 + (sizes > 0))
        self._advance(int(layout.has(SAMPLE_WEIGHT) or layout.has(SAMPLE_WEIGHT_STRUCT)))
        self._advance(int(layout.has(SAMPLE_DATA_SRC)) + int(layout.has(SAMPLE_TRANSACTION)))
        if layout.has(SAMPLE_REGS_INTR):
            self.skip_registers(layout.interrupt_registers)
        self._advance(int(layout.has(SAMPLE_PHYS_ADDR)))
        return self._word().view(np.int64)


def _columns(
    words: Words,
    starts: Places,
    layout: SampleLayout,
    times: npt.NDArray[np.int64],
    events: npt.NDArray[np.int32],
    cgroups: npt.NDArray[np.int64],
) -> Samples:
    def field(kind: int) -> Words | None:
        position = layout.position(kind)
        return None if position is None else words[starts + position]

    unknown = np.full(len(starts), -1, np.int32)
    tasks, cpus, periods = field(SAMPLE_TID), field(SAMPLE_CPU), field(SAMPLE_PERIOD)
    return Samples(
        times,
        unknown if tasks is None else (tasks & _LOW).astype(np.uint32).view(np.int32),
        unknown if tasks is None else (tasks >> _HALF).astype(np.uint32).view(np.int32),
        unknown if cpus is None else (cpus & _LOW).astype(np.uint32).view(np.int32),
        events,
        np.ones(len(starts), np.int64) if periods is None else periods.view(np.int64),
        cgroups,
        np.zeros(len(starts), np.int64),
    )


def _innermost(words: Words, starts: Places, layout: SampleLayout) -> Words:
    """Without a call chain the instruction pointer is all of the stack; the record's misc says where it ran."""
    position = layout.position(SAMPLE_IP)
    mode = (words[starts] >> _HALF & np.uint64(MISC_CPUMODE_MASK)).astype(np.int64)
    marks = np.full(8, CONTEXT_USER, np.uint64)
    marks[MISC_KERNEL], marks[MISC_GUEST_KERNEL], marks[MISC_GUEST_USER] = (
        CONTEXT_KERNEL,
        CONTEXT_GUEST_KERNEL,
        CONTEXT_GUEST_USER,
    )
    return np.stack((marks[mode], words[starts + (position or 0)]), axis=1)


def _distinct(words: Words, parts: list[_Spans]) -> tuple[Chains, npt.NDArray[np.int64]]:
    """The distinct chains, and which of them each sample has."""
    starts = np.concatenate([part.starts for part in parts])
    lengths = np.concatenate([part.lengths for part in parts])
    extra = np.concatenate([part.extra for part in parts])
    hashes = _hash(words, starts, lengths)
    has_extra = extra[:, 0] != 0
    hashes += np.where(
        has_extra, extra[:, 0] * _MULTIPLIERS[-2] + (extra[:, 1] ^ extra[:, 1] >> np.uint64(29)) * _MULTIPLIERS[-1], 0
    )
    different, first, chain = distinct(hashes)
    addresses = words[flat_places(starts[first], lengths[first])]
    lengths = lengths[first]
    if has_extra.any():
        added = has_extra[first]
        ends = np.repeat(np.cumsum(lengths)[added], 2)
        addresses = np.insert(addresses, ends, extra[first[added]].ravel())
        lengths = lengths + 2 * added
    return Chains(different, addresses, lengths, _has_user(addresses, lengths)), chain


def _has_user(addresses: Words, lengths: Places) -> npt.NDArray[np.bool_]:
    """A chain without marks is judged by its addresses."""
    found = np.zeros(len(lengths), bool)
    has_any = np.flatnonzero(lengths)
    if len(has_any):
        is_user = (addresses < UPPER_HALF) | (addresses == np.uint64(CONTEXT_USER))
        found[has_any] = np.logical_or.reduceat(is_user, (np.cumsum(lengths) - lengths)[has_any])
    return found


def _hash(words: Words, starts: Places, lengths: Places) -> Words:
    """64 bits of each chain: a sum of its addresses, each times an odd number that its place has."""
    hashes = lengths.astype(np.uint64) * _LENGTH_FACTOR
    has_any = np.flatnonzero(lengths)
    if len(has_any):
        firsts = np.cumsum(lengths) - lengths
        addresses = words[flat_places(starts, lengths)]
        within = np.arange(len(addresses)) - np.repeat(firsts, lengths)
        mixed = (addresses ^ addresses >> np.uint64(29)) * _MULTIPLIERS[within]
        hashes[has_any] += np.add.reduceat(mixed, firsts[has_any])
    return hashes


def flat_places(starts: Places, lengths: Places) -> Places:
    """The places start, start + 1, ... of every span, one span after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
