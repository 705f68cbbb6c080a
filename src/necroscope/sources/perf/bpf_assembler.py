"""Just enough of the BPF instruction set to write a small program without a compiler on the node
(linux/bpf.h).

Ours because every loader we know brings a compiler, libbpf or kernel headers. Instructions are
eight bytes: opcode, registers, offset, constant.
"""

import struct
from typing import Final

R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 = range(11)
MAP_LOOKUP: Final = 1
KTIME_GET_NS: Final = 5
GET_SMP_PROCESSOR_ID: Final = 8
GET_CURRENT_PID_TGID: Final = 14
GET_CURRENT_COMM: Final = 16
GET_STACK: Final = 67
GET_CURRENT_CGROUP_ID: Final = 80
PROBE_READ_USER: Final = 112
PROBE_READ_KERNEL: Final = 113
SEQ_WRITE: Final = 127
RINGBUF_RESERVE: Final = 131
RINGBUF_SUBMIT: Final = 132
GET_TASK_STACK: Final = 141
GET_CURRENT_TASK_BTF: Final = 158
TASK_PT_REGS: Final = 175
LOOP: Final = 181

_INSTRUCTION: Final = struct.Struct("<BBhi")
_PSEUDO_MAP: Final = 1
_PSEUDO_MAP_VALUE: Final = 2
_PSEUDO_FUNCTION: Final = 4


class Program:
    """Instructions in order; jumps name labels, which `code` turns into distances."""

    def __init__(self) -> None:
        self._instructions: list[tuple[int, int, int, int, int]] = []
        self._jumps: list[tuple[int, str]] = []
        self._functions: list[tuple[int, str]] = []
        self._labels: dict[str, int] = {}

    def label(self, name: str) -> None:
        """A second place of the same name would lead the jumps of the first astray."""
        if name in self._labels:
            raise ValueError(f"there is a label {name!r} already")
        self._labels[name] = len(self._instructions)

    def load_map(self, register: int, descriptor: int) -> None:
        """A 64-bit constant takes two instructions."""
        self._add(0x18, register, _PSEUDO_MAP, 0, descriptor)
        self._add(0)

    def load_map_value(self, register: int, descriptor: int) -> None:
        """The address of the value itself, of an array with one entry (Linux 5.2)."""
        self._add(0x18, register, _PSEUDO_MAP_VALUE, 0, descriptor)
        self._add(0)

    def load_constant(self, register: int, constant: int) -> None:
        """All 64 bits of it: an address."""
        low, high = struct.unpack("<ii", constant.to_bytes(8, "little"))
        self._add(0x18, register, constant=low)
        self._add(0, constant=high)

    def load_function(self, register: int, label: str) -> None:
        """The address of a function of this program, for a helper that calls it back (5.13)."""
        self._functions.append((len(self._instructions), label))
        self._add(0x18, register, _PSEUDO_FUNCTION)
        self._add(0)

    def position(self, label: str) -> int:
        """How many instructions come before it."""
        return self._labels[label]

    def load8(self, register: int, base: int, offset: int) -> None:
        self._add(0x71, register, base, offset)

    def load32(self, register: int, base: int, offset: int) -> None:
        self._add(0x61, register, base, offset)

    def load64(self, register: int, base: int, offset: int) -> None:
        self._add(0x79, register, base, offset)

    def store32(self, base: int, offset: int, register: int) -> None:
        self._add(0x63, base, register, offset)

    def store32_constant(self, base: int, offset: int, constant: int) -> None:
        self._add(0x62, base, 0, offset, constant)

    def store64(self, base: int, offset: int, register: int) -> None:
        self._add(0x7B, base, register, offset)

    def store64_constant(self, base: int, offset: int, constant: int) -> None:
        self._add(0x7A, base, 0, offset, constant)

    def move(self, register: int, source: int) -> None:
        self._add(0xBF, register, source)

    def move_constant(self, register: int, constant: int) -> None:
        self._add(0xB7, register, constant=constant)

    def add(self, register: int, source: int) -> None:
        self._add(0x0F, register, source)

    def add_constant(self, register: int, constant: int) -> None:
        self._add(0x07, register, constant=constant)

    def subtract(self, register: int, source: int) -> None:
        self._add(0x1F, register, source)

    def multiply_constant(self, register: int, constant: int) -> None:
        self._add(0x27, register, constant=constant)

    def multiply(self, register: int, source: int) -> None:
        self._add(0x2F, register, source)

    def divide(self, register: int, source: int) -> None:
        """Unsigned; by zero gives zero."""
        self._add(0x3F, register, source)

    def shift_left(self, register: int, bits: int) -> None:
        self._add(0x67, register, constant=bits)

    def shift_right(self, register: int, bits: int) -> None:
        self._add(0x77, register, constant=bits)

    def keep_bits(self, register: int, bits: int) -> None:
        self._add(0x57, register, constant=bits)

    def jump(self, label: str) -> None:
        self._jump(0x05, 0, 0, label)

    def jump_if_any_bit(self, register: int, bits: int, label: str) -> None:
        self._jump(0x45, register, bits, label)

    def jump_if_differs(self, register: int, other: int, label: str) -> None:
        self._jumps.append((len(self._instructions), label))
        self._add(0x5D, register, other)

    def jump_if_equal(self, register: int, constant: int, label: str) -> None:
        self._jump(0x15, register, constant, label)

    def jump_if_not_equal(self, register: int, constant: int, label: str) -> None:
        self._jump(0x55, register, constant, label)

    def jump_if_above(self, register: int, constant: int, label: str) -> None:
        self._jump(0x25, register, constant, label)

    def jump_if_at_most(self, register: int, constant: int, label: str) -> None:
        self._jump(0xB5, register, constant, label)

    def jump_if_not_below(self, register: int, other: int, label: str) -> None:
        self._jumps.append((len(self._instructions), label))
        self._add(0x3D, register, other)

    def jump_if_above_register(self, register: int, other: int, label: str) -> None:
        self._jumps.append((len(self._instructions), label))
        self._add(0x2D, register, other)

    def call(self, function: int) -> None:
        self._add(0x85, constant=function)

    def leave(self) -> None:
        self._add(0x95)

    def code(self) -> bytes:
        instructions = self._instructions.copy()
        for position, label in self._jumps:
            opcode, register, source, _, constant = instructions[position]
            instructions[position] = (
                opcode,
                register,
                source,
                self._labels[label] - position - 1,
                constant,
            )
        for position, label in self._functions:
            opcode, register, source, _, _ = instructions[position]
            distance = self._labels[label] - position - 1
            instructions[position] = (opcode, register, source, 0, distance)
        return b"".join(
            _INSTRUCTION.pack(opcode, register | source << 4, offset, constant)
            for opcode, register, source, offset, constant in instructions
        )

    def _jump(self, opcode: int, register: int, constant: int, label: str) -> None:
        self._jumps.append((len(self._instructions), label))
        self._add(opcode, register, constant=constant)

    def _add(
        self, opcode: int, register: int = 0, source: int = 0, offset: int = 0, constant: int = 0
    ) -> None:
        self._instructions.append((opcode, register, source, offset, constant))
