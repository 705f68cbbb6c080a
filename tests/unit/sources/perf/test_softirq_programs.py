"""The two BPF programs, run instruction by instruction on a machine of our own."""

import struct
from collections.abc import Callable
from operator import eq, ge, gt, le, ne

import pytest

from necroscope.model.tables import SOFTIRQ_DELAY_BUCKETS, SOFTIRQ_VECTORS
from necroscope.sources.perf.softirq_programs import (
    VECTOR_WORDS,
    Maps,
    entry_program,
    raise_program,
)

VECTORS = len(SOFTIRQ_VECTORS)
WORDS = VECTOR_WORDS
NET_RX = SOFTIRQ_VECTORS.index("net_rx")
MASK = (1 << 64) - 1
JUMPS = {0x15: eq, 0x55: ne, 0x25: gt, 0xB5: le, 0x3D: ge}


class Machine:
    """Runs both programs on one core: registers, a context with the vector, a stack, and the two
    maps, in one address space.
    """

    CONTEXT, STACK, DELAYS, WORST = 0x1000, 0x2000, 0x10000, 0x20000

    def __init__(self, maps: Maps, cpu: int) -> None:
        self.memory = bytearray(0x30000)
        self.now_ns = 0
        self.cpu = cpu
        # What an interrupt does while the next reading of the clock is under way.
        self.interrupt: Callable[[], None] | None = None
        self.raise_program, self.entry_program = raise_program(maps, 8), entry_program(maps, 8)
        # A map with a value for each core shows a program that of its own.
        self.first = cpu * VECTORS if maps.cores else 0

    def word(self, address: int) -> int:
        return int(struct.unpack_from("<Q", self.memory, address)[0])

    def raised_ns(self, vector: int) -> int:
        return self.word(self.DELAYS + (self.first + vector) * WORDS * 8)

    def histogram(self, vector: int) -> list[int]:
        first = self.DELAYS + ((self.first + vector) * WORDS + 1) * 8
        return [self.word(first + bucket * 8) for bucket in range(SOFTIRQ_DELAY_BUCKETS)]

    def worst_ns(self, vector: int) -> int:
        return self.word(self.WORST + (self.first + vector) * 8)

    def softirq_raise(self, vector: int, now_ns: int) -> None:
        self._run(self.raise_program, vector, now_ns)

    def softirq_entry(self, vector: int, now_ns: int) -> None:
        self._run(self.entry_program, vector, now_ns)

    def _run(self, program: bytes, vector: int, now_ns: int) -> None:
        struct.pack_into("<Q", self.memory, self.CONTEXT + 8, vector)
        self.now_ns = now_ns
        registers = [0] * 11
        registers[1], registers[10] = self.CONTEXT, self.STACK
        position = 0
        while (position := self._step(program, position, registers)) >= 0:
            pass
        assert registers[0] == 0

    def _call(self, helper: int, map_address: int) -> int:
        result = {1: map_address, 5: self.now_ns, 8: self.cpu}[helper]
        if helper == 5 and self.interrupt is not None:
            interrupt, self.interrupt = self.interrupt, None
            interrupt()
        return result

    def _step(self, program: bytes, position: int, registers: list[int]) -> int:  # noqa: C901, PLR0912
        opcode, pair, offset, constant = struct.unpack_from("<BBhi", program, position * 8)
        target, source = pair & 15, pair >> 4
        value = constant & MASK
        match opcode:
            case 0x95:
                return -1
            case 0x18:
                registers[target] = {3: self.DELAYS, 4: self.WORST}[constant]
                return position + 2
            case 0x61:
                registers[target] = int(
                    struct.unpack_from("<I", self.memory, registers[source] + offset)[0]
                )
            case 0x79:
                registers[target] = self.word(registers[source] + offset)
            case 0x62:
                struct.pack_into("<i", self.memory, registers[target] + offset, constant)
            case 0x7A:
                struct.pack_into("<q", self.memory, registers[target] + offset, constant)
            case 0x7B:
                struct.pack_into("<Q", self.memory, registers[target] + offset, registers[source])
            case 0xBF:
                registers[target] = registers[source]
            case 0xB7:
                registers[target] = value
            case 0x0F:
                registers[target] = registers[target] + registers[source] & MASK
            case 0x07:
                registers[target] = registers[target] + constant & MASK
            case 0x1F:
                registers[target] = registers[target] - registers[source] & MASK
            case 0x27:
                registers[target] = registers[target] * constant & MASK
            case 0x67:
                registers[target] = registers[target] << constant & MASK
            case 0x77:
                registers[target] >>= constant
            case 0x85:
                registers[0] = self._call(constant, registers[1])
                registers[1:6] = [0xDEAD] * 5
            case _:
                compared = registers[source] if opcode == 0x3D else value
                is_taken = JUMPS[opcode](registers[target], compared)
                return position + 1 + (offset if is_taken else 0)
        return position + 1


@pytest.fixture(params=["a value for each core", "first core", "last core"])
def machine(request: pytest.FixtureRequest) -> Machine:
    if request.param == "a value for each core":
        return Machine(Maps(delays=3, worst=4), cpu=2)
    return Machine(Maps(delays=3, worst=4, cores=4), cpu=0 if request.param == "first core" else 3)


@pytest.mark.parametrize(
    ("wait_ns", "bucket"),
    [
        (0, 0),
        (1023, 0),
        (2047, 0),
        (2048, 1),
        (4095, 1),
        (4096, 2),
        (1 << 20, 10),
        ((1 << 20) - 1, 9),
        (1_400_000_000, 20),
        (1 << 33, 23),
        ((1 << 34) - 1, 23),
        (1 << 34, 23),
        (1 << 50, 23),
    ],
)
def test_a_wait_is_counted_in_the_bucket_of_its_power_of_two(
    machine: Machine, wait_ns: int, bucket: int
) -> None:
    machine.softirq_raise(NET_RX, 1_000)
    machine.softirq_entry(NET_RX, 1_000 + wait_ns)
    expected = [0] * SOFTIRQ_DELAY_BUCKETS
    expected[bucket] = 1
    assert machine.histogram(NET_RX) == expected
    assert machine.worst_ns(NET_RX) == wait_ns
    assert machine.raised_ns(NET_RX) == 0


def test_a_second_raise_does_not_make_the_first_younger(machine: Machine) -> None:
    machine.softirq_raise(NET_RX, 1_000)
    machine.softirq_raise(NET_RX, 900_000)
    assert machine.raised_ns(NET_RX) == 1_000
    machine.softirq_entry(NET_RX, 1_000_000)
    assert machine.worst_ns(NET_RX) == 999_000


def test_a_raise_by_an_interrupt_during_the_entry_waits_for_the_next_one(machine: Machine) -> None:
    machine.softirq_raise(NET_RX, 1_000)
    machine.interrupt = lambda: machine.softirq_raise(NET_RX, 4_000)
    machine.softirq_entry(NET_RX, 3_500)
    assert machine.raised_ns(NET_RX) == 4_000
    machine.softirq_entry(NET_RX, 94_000)
    assert machine.worst_ns(NET_RX) == 90_000
    assert sum(machine.histogram(NET_RX)) == 2


def test_an_entry_whose_raise_was_not_seen_counts_nothing(machine: Machine) -> None:
    machine.softirq_entry(NET_RX, 5_000)
    assert sum(machine.histogram(NET_RX)) == 0
    assert machine.worst_ns(NET_RX) == 0


def test_vectors_do_not_touch_each_other(machine: Machine) -> None:
    for vector in range(VECTORS):
        machine.softirq_raise(vector, 1_000)
    machine.softirq_entry(0, 3_000)
    machine.softirq_entry(VECTORS - 1, 9_000)
    assert [machine.worst_ns(vector) for vector in range(VECTORS)] == [
        2_000,
        *[0] * (VECTORS - 2),
        8_000,
    ]
    assert [bool(machine.raised_ns(vector)) for vector in range(VECTORS)] == [
        False,
        *[True] * (VECTORS - 2),
        False,
    ]


def test_the_worst_is_kept_and_not_the_last(machine: Machine) -> None:
    for wait_ns in (5_000, 70_000, 3_000):
        machine.softirq_raise(NET_RX, 1_000)
        machine.softirq_entry(NET_RX, 1_000 + wait_ns)
    assert machine.worst_ns(NET_RX) == 70_000
    assert sum(machine.histogram(NET_RX)) == 3


def test_a_core_without_a_place_is_passed_over() -> None:
    machine = Machine(Maps(delays=3, worst=4, cores=4), cpu=4)
    machine.softirq_raise(NET_RX, 1_000)
    machine.softirq_entry(NET_RX, 2_000)
    assert not any(machine.memory[Machine.DELAYS :])


def test_a_vector_this_table_does_not_know_is_passed_over(machine: Machine) -> None:
    machine.softirq_raise(VECTORS, 1_000)
    machine.softirq_entry(0xFFFF_FFFF, 1_000)
    assert not any(machine.memory[Machine.DELAYS :])
