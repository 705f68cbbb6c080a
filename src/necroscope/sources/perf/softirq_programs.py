"""The two BPF programs that time softirqs, at irq:softirq_raise and irq:softirq_entry
(include/trace/events/irq.h).

Both run for every packet, so what they leave out counts. A raise that finds an older one waiting
ends at once; an entry forgets the raise first, so that a raise by an interrupt in between is kept;
a wait of the first bucket, which nearly all are, is not searched for its bucket.
"""

from typing import Final, NamedTuple

from necroscope.model.tables import SOFTIRQ_DELAY_BUCKETS, SOFTIRQ_VECTORS
from necroscope.sources.perf import bpf_assembler as bpf

VECTORS: Final = len(SOFTIRQ_VECTORS)
# Of a vector in the map of delays: the time of the raise that waits, the histogram, and what fills
# up four cache lines, so that a place is found by shifting and no two cores write to one line.
VECTOR_WORDS: Final = 32
CORE_BYTES: Final = VECTORS * VECTOR_WORDS * 8
WORST_BYTES: Final = VECTORS * 8

_VECTOR_SHIFT: Final = 8
_WORD_SHIFT: Final = 3
_NS_PER_KNS_BITS: Final = 10  # a shift instead of a division: buckets are powers of two of 1.024 us
_STACK_KEY: Final = -4


class Maps(NamedTuple):
    """Where both programs find their words: descriptors of the map of delays and of that of the
    worst waits.

    With `cores` each map is one value with the words of all cores, whose address is a constant of
    the program (Linux 5.2). Without, it has a value for each core, and a call looks it up.
    """

    delays: int
    worst: int
    cores: int | None = None


def raise_program(maps: Maps, vector_offset: int = 0) -> bytes:
    """`vector_offset` is that of the field `vec`; a raw tracepoint has the vector as its first
    argument.
    """
    program = bpf.Program()
    _point_at_vector(program, maps, vector_offset)
    program.jump_if_not_equal(bpf.R8, 0, "out")
    program.call(bpf.KTIME_GET_NS)
    program.store64(bpf.R7, 0, bpf.R0)
    _leave(program)
    return program.code()


def entry_program(maps: Maps, vector_offset: int = 0) -> bytes:
    program = bpf.Program()
    _point_at_vector(program, maps, vector_offset)
    program.jump_if_equal(bpf.R8, 0, "out")
    program.store64_constant(bpf.R7, 0, 0)
    program.call(bpf.KTIME_GET_NS)
    program.move(bpf.R9, bpf.R0)
    program.subtract(bpf.R9, bpf.R8)
    _count_in_bucket(program)
    _keep_worst(program, maps)
    _leave(program)
    return program.code()


def _point_at_vector(program: bpf.Program, maps: Maps, vector_offset: int) -> None:
    """R6 = place of the vector among those of the map, R7 = its words, R8 = the time of the raise
    that waits.
    """
    if maps.cores is None:
        program.load32(bpf.R6, bpf.R1, vector_offset)
        program.jump_if_above(bpf.R6, VECTORS - 1, "out")
    else:
        program.load64(bpf.R6, bpf.R1, vector_offset)
        program.jump_if_above(bpf.R6, VECTORS - 1, "out")
        program.call(bpf.GET_SMP_PROCESSOR_ID)
        program.jump_if_above(bpf.R0, maps.cores - 1, "out")
        program.multiply_constant(bpf.R0, VECTORS)
        program.add(bpf.R6, bpf.R0)
    _point(program, maps, maps.delays, _VECTOR_SHIFT)
    program.move(bpf.R7, bpf.R0)
    program.load64(bpf.R8, bpf.R7, 0)


def find_bucket(program: bpf.Program, buckets: int) -> None:
    """R2 = offset of the bucket for the wait in R9: its log2, found by halving; the last takes the
    rest.
    """
    program.move(bpf.R1, bpf.R9)
    program.shift_right(bpf.R1, _NS_PER_KNS_BITS)
    program.move_constant(bpf.R2, 0)
    program.jump_if_at_most(bpf.R1, 1, "bucket")
    for bits in (16, 8, 4, 2, 1):
        program.jump_if_at_most(bpf.R1, (1 << bits) - 1, f"below{bits}")
        program.shift_right(bpf.R1, bits)
        program.add_constant(bpf.R2, bits)
        program.label(f"below{bits}")
    program.jump_if_at_most(bpf.R2, buckets - 1, "bucket")
    program.move_constant(bpf.R2, buckets - 1)
    program.label("bucket")
    program.shift_left(bpf.R2, _WORD_SHIFT)


def _count_in_bucket(program: bpf.Program) -> None:
    find_bucket(program, SOFTIRQ_DELAY_BUCKETS)
    program.add(bpf.R7, bpf.R2)
    program.load64(bpf.R1, bpf.R7, 8)
    program.add_constant(bpf.R1, 1)
    program.store64(bpf.R7, 8, bpf.R1)


def _keep_worst(program: bpf.Program, maps: Maps) -> None:
    _point(program, maps, maps.worst, _WORD_SHIFT)
    program.load64(bpf.R2, bpf.R0, 0)
    program.jump_if_not_below(bpf.R2, bpf.R9, "out")
    program.store64(bpf.R0, 0, bpf.R9)


def _point(program: bpf.Program, maps: Maps, descriptor: int, shift: int) -> None:
    """R0 = the words of place R6 in a map."""
    if maps.cores is None:
        program.store32_constant(bpf.R10, _STACK_KEY, 0)
        program.load_map(bpf.R1, descriptor)
        program.move(bpf.R2, bpf.R10)
        program.add_constant(bpf.R2, _STACK_KEY)
        program.call(bpf.MAP_LOOKUP)
        program.jump_if_equal(bpf.R0, 0, "out")
    else:
        program.load_map_value(bpf.R0, descriptor)
    program.move(bpf.R1, bpf.R6)
    program.shift_left(bpf.R1, shift)
    program.add(bpf.R0, bpf.R1)


def _leave(program: bpf.Program) -> None:
    program.label("out")
    program.move_constant(bpf.R0, 0)
    program.leave()
