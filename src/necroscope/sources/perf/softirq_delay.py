"""How long raised softirqs wait for their handler, by core and vector: two small BPF programs and a map, about 0.35 us a softirq.

At irq:softirq_raise the time is kept unless an older raise still waits; at irq:softirq_entry the wait goes into a histogram of
powers of two. A raise that never got its handler is seen too, because its time is read with the rest: a stall in progress.
"""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.model.reading import Moment, Reading, Rows
from necroscope.model.tables import SOFTIRQ_DELAY_BUCKETS, SOFTIRQ_VECTORS
from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf.bpf import PerCpuValue, TracepointProgram, allow_locked_memory
from necroscope.sources.perf.tracefs import read_tracepoints

_RAISE: Final = "irq:softirq_raise"
_ENTRY: Final = "irq:softirq_entry"
_VECTORS: Final = len(SOFTIRQ_VECTORS)
# Per vector: the time of the raise that waits, then the histogram. Per core: all vectors.
_WORDS: Final = 1 + SOFTIRQ_DELAY_BUCKETS
_VECTOR_BYTES: Final = 8 * _WORDS
_CORE_BYTES: Final = _VECTORS * _VECTOR_BYTES
_STACK_KEY: Final = -4
_NS_PER_KNS_BITS: Final = 10  # a shift instead of a division: buckets are powers of two of 1.024 us
# A raise is normally served within microseconds; younger ones than this are just passing by.
_PENDING_NS: Final = 1_000_000
_UNPACK: Final = struct.Struct(f"<{_WORDS}Q").unpack_from


def raise_program(vector_offset: int, delays: int) -> bytes:
    program = bpf.Program()
    _point_at_vector(program, vector_offset, delays)
    program.jump_if_not_equal(bpf.R8, 0, "out")
    program.call(bpf.KTIME_GET_NS)
    program.store64(bpf.R7, 0, bpf.R0)
    _leave(program)
    return program.code()


def entry_program(vector_offset: int, delays: int, worst: int) -> bytes:
    program = bpf.Program()
    _point_at_vector(program, vector_offset, delays)
    program.jump_if_equal(bpf.R8, 0, "out")
    program.call(bpf.KTIME_GET_NS)
    program.move(bpf.R9, bpf.R0)
    program.subtract(bpf.R9, bpf.R8)
    program.store64_constant(bpf.R7, 0, 0)
    _count_in_bucket(program)
    _keep_worst(program, worst)
    _leave(program)
    return program.code()


def _point_at_vector(program: bpf.Program, vector_offset: int, delays: int) -> None:
    """R6 = vector, R7 = its place in the map, R8 = the time of the raise that waits."""
    program.load32(bpf.R6, bpf.R1, vector_offset)
    program.jump_if_above(bpf.R6, _VECTORS - 1, "out")
    _look_up(program, delays)
    program.move(bpf.R7, bpf.R0)
    program.move(bpf.R1, bpf.R6)
    program.multiply_constant(bpf.R1, _VECTOR_BYTES)
    program.add(bpf.R7, bpf.R1)
    program.load64(bpf.R8, bpf.R7, 0)


def _count_in_bucket(program: bpf.Program) -> None:
    """Bucket = log2 of the wait in R9, found by halving; the last bucket takes the rest."""
    program.move(bpf.R1, bpf.R9)
    program.shift_right(bpf.R1, _NS_PER_KNS_BITS)
    program.move_constant(bpf.R2, 0)
    for bits in (16, 8, 4, 2, 1):
        program.jump_if_at_most(bpf.R1, (1 << bits) - 1, f"below{bits}")
        program.shift_right(bpf.R1, bits)
        program.add_constant(bpf.R2, bits)
        program.label(f"below{bits}")
    program.jump_if_at_most(bpf.R2, SOFTIRQ_DELAY_BUCKETS - 1, "bucket")
    program.move_constant(bpf.R2, SOFTIRQ_DELAY_BUCKETS - 1)
    program.label("bucket")
    program.shift_left(bpf.R2, 3)
    program.add(bpf.R7, bpf.R2)
    program.load64(bpf.R1, bpf.R7, 8)
    program.add_constant(bpf.R1, 1)
    program.store64(bpf.R7, 8, bpf.R1)


def _keep_worst(program: bpf.Program, worst: int) -> None:
    _look_up(program, worst)
    program.move(bpf.R1, bpf.R6)
    program.shift_left(bpf.R1, 3)
    program.add(bpf.R0, bpf.R1)
    program.load64(bpf.R2, bpf.R0, 0)
    program.jump_if_not_below(bpf.R2, bpf.R9, "out")
    program.store64(bpf.R0, 0, bpf.R9)


def _look_up(program: bpf.Program, descriptor: int) -> None:
    program.store32_constant(bpf.R10, _STACK_KEY, 0)
    program.load_map(bpf.R1, descriptor)
    program.move(bpf.R2, bpf.R10)
    program.add_constant(bpf.R2, _STACK_KEY)
    program.call(bpf.MAP_LOOKUP)
    program.jump_if_equal(bpf.R0, 0, "out")


def _leave(program: bpf.Program) -> None:
    program.label("out")
    program.move_constant(bpf.R0, 0)
    program.leave()


class SoftirqDelay:
    """Follows the `Source` protocol; opens at the first read."""

    name = "softirq delay"
    tables: tuple[str, ...] = ("softirq_delay",)

    def __init__(self, root: Path, possible_cpus: Sequence[int], period_s: float = 1.0) -> None:
        self.period_s = period_s
        self._root = root
        self._possible_cpus = tuple(possible_cpus)
        self._delays: PerCpuValue | None = None
        self._worst: PerCpuValue | None = None
        self._programs: list[TracepointProgram] = []
        self._before = b""

    def read(self, now: Moment) -> Reading:
        if self._delays is None or self._worst is None:
            self._open()
            return Reading()
        worst = memoryview(self._worst.read()).cast("Q")
        # A wait that ends between the read and the clearing is still in the histogram; one that ends right after has its
        # worst time in the next row.
        self._worst.clear()
        data = self._delays.read()
        # The map's n-th value is that of the n-th possible core, and their numbers may have holes.
        found = difference(self._before, data, worst, now)
        rows: Rows = [(row[0], self._possible_cpus[row[1]], *row[2:]) for row in found]
        self._before = data
        return Reading({"softirq_delay": rows} if rows else {})

    def close(self) -> None:
        for program in self._programs:
            program.close()
        for value in (self._delays, self._worst):
            if value is not None:
                value.close()
        self._programs, self._delays, self._worst = [], None, None

    def _open(self) -> None:
        tracepoints = read_tracepoints((_RAISE, _ENTRY), self._root)
        allow_locked_memory()
        try:
            self._delays = PerCpuValue(_CORE_BYTES, len(self._possible_cpus))
            self._worst = PerCpuValue(8 * _VECTORS, len(self._possible_cpus))
            delays, worst = self._delays.descriptor, self._worst.descriptor
            raised, entered = tracepoints[_RAISE], tracepoints[_ENTRY]
            entry_code = entry_program(entered.fields["vec"].offset, delays, worst)
            self._programs.append(TracepointProgram(entry_code, entered.id))
            raise_code = raise_program(raised.fields["vec"].offset, delays)
            self._programs.append(TracepointProgram(raise_code, raised.id))
        except (OSError, NecroscopeError) as error:
            self.close()
            facts = error.facts if isinstance(error, NecroscopeError) else f"cannot load BPF programs: {error.strerror}"
            hint = "frozen /proc/softirqs and starving ksoftirqd threads are still seen"
            raise SourceUnavailable(facts, f"{getattr(error, 'hint', '')}; {hint}".lstrip("; ")) from None
        self._before = self._delays.read()


def difference(
    before: bytes, after: bytes, worst: memoryview, now: Moment
) -> list[tuple[int, int, str, int, int, int, list[int]]]:
    """Rows for the cores and vectors in which a softirq was entered, or a raise waits, since `before`."""
    rows = []
    raised = memoryview(after).cast("Q")[::_WORDS]
    for cpu in range(len(after) // _CORE_BYTES):
        start, first = cpu * _CORE_BYTES, cpu * _VECTORS
        is_same = after[start : start + _CORE_BYTES] == before[start : start + _CORE_BYTES]
        if is_same and not any(raised[first : first + _VECTORS]) and not any(worst[first : first + _VECTORS]):
            continue
        for vector in range(_VECTORS):
            place = start + vector * _VECTOR_BYTES
            row = _row(before, after, place, worst[first + vector], now)
            if row is not None:
                count, worst_ns, pending_ns, histogram = row
                rows.append((now.time_ns, cpu, SOFTIRQ_VECTORS[vector], count, worst_ns, pending_ns, histogram))
    return rows


def _row(before: bytes, after: bytes, place: int, worst_ns: int, now: Moment) -> tuple[int, int, int, list[int]] | None:
    raised_ns, *counts = _UNPACK(after, place)
    pending_ns = max(0, now.monotonic_ns - raised_ns) if raised_ns else 0
    if pending_ns < _PENDING_NS:
        pending_ns = 0
    is_same = after[place + 8 : place + _VECTOR_BYTES] == before[place + 8 : place + _VECTOR_BYTES]
    if is_same and not pending_ns and not worst_ns:
        return None
    histogram = [now_count - then for now_count, then in zip(counts, _UNPACK(before, place)[1:], strict=True)]
    while histogram and not histogram[-1]:
        histogram.pop()
    return sum(histogram), worst_ns, pending_ns, histogram
