"""Keeps softirqs off on the core it runs on, for a chosen time: a BPF program that only loops, run
by BPF_PROG_TEST_RUN.

The kernel holds local_bh_disable() around a test run (net/bpf/test_run.c), so that nothing but hard
interrupts gets in while the program loops: what a driver does that keeps a spin_lock_bh too long,
without a driver. The program looks at the clock itself: a hold ends on time however slow or fast
the core is, and a count of rounds that was measured before would not. Two nested bpf_loop() calls
make it long enough; their callbacks are functions of the program, for which the kernel wants types
(BTF, Documentation/bpf/btf.rst).
"""

import ctypes
import os
import struct
from typing import Final, Self

from necroscope.model.units import NS_PER_S
from necroscope.perf_abi.syscalls import syscall
from necroscope.sources.perf.bpf_assembler import (
    KTIME_GET_NS,
    LOOP,
    R0,
    R1,
    R2,
    R3,
    R4,
    R6,
    R10,
    Program,
)

_PROG_LOAD, _PROG_TEST_RUN, _BTF_LOAD = 5, 10, 18
_SCHED_CLS: Final = 3
_DURATION_OFFSET: Final = 36  # of `duration` in the attributes of a test run
_FUNCTIONS: Final = ("main", "until_deadline", "nothing")
_MOST_LOOPS: Final = 1 << 23  # the kernel's own limit, BPF_MAX_LOOPS
# Some ten microseconds between two looks at the clock: the outer loop outlasts any hold.
_INNER: Final = 1 << 13
_DEADLINE_OFFSET: Final = -8  # on the stack of main
# Below what a network driver bears (5 s), and far below what makes the kernel complain of a soft
# lockup (20 s).
LONGEST_S: Final = 4.0


class SoftirqHold:
    def __init__(self, longest_s: float = LONGEST_S) -> None:
        self._longest_s = longest_s
        self._types = _load_types()

    def hold(self, seconds: float) -> float:
        """How long it was in fact, in seconds."""
        program = _load_program(round(min(seconds, self._longest_s) * NS_PER_S), self._types)
        packet = ctypes.create_string_buffer(64)
        content = struct.pack(
            "<IIIIQQII", program, 0, 64, 0, ctypes.addressof(packet), 0, 1, 0
        ) + bytes(32)
        attr = ctypes.create_string_buffer(content, len(content))
        try:
            syscall("bpf", _PROG_TEST_RUN, attr, len(attr))
        finally:
            os.close(program)
        # The kernel's own figure: by the clock on the wall the call seems four times as long where
        # others wait for the core, for they get it as soon as the run is over.
        return int(struct.unpack_from("<I", attr, _DURATION_OFFSET)[0]) / NS_PER_S

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._types)


def _load_types() -> int:
    """int, and three functions `int f(void)`: the program and the two callbacks."""
    names = b"\0int\0" + b"".join(name.encode() + b"\0" for name in _FUNCTIONS)
    types = struct.pack("<IIII", 1, 1 << 24, 4, 1 << 24 | 32)  # int, 4 bytes, signed, 32 bits
    types += struct.pack("<III", 0, 13 << 24, 1)  # a prototype that returns it
    types += b"".join(
        struct.pack("<III", names.index(name.encode()), 12 << 24, 2) for name in _FUNCTIONS
    )
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(names))
    data = ctypes.create_string_buffer(header + types + names, 24 + len(types) + len(names))
    return _bpf(
        _BTF_LOAD, struct.pack("<QQIII", ctypes.addressof(data), 0, len(data), 0, 0) + bytes(4)
    )


def _load_program(duration_ns: int, types: int) -> int:
    program = _hold_program(duration_ns)
    instructions = program.code()
    code = ctypes.create_string_buffer(instructions, len(instructions))
    licence = ctypes.create_string_buffer(b"GPL")
    first_type = 3  # after int and the prototype
    functions = b"".join(
        struct.pack("<II", program.position(name), first_type + number)
        for number, name in enumerate(_FUNCTIONS)
    )
    info = ctypes.create_string_buffer(functions, len(functions))
    head = struct.pack("<IIQQ", _SCHED_CLS, len(code) // 8, *map(ctypes.addressof, (code, licence)))
    described = struct.pack("<IIQI4x", types, 8, ctypes.addressof(info), len(_FUNCTIONS))
    # Between them: no log of the verifier, no flags, no name, no device.
    return _bpf(_PROG_LOAD, head + bytes(48) + described)


def _hold_program(duration_ns: int) -> Program:
    program = Program()
    program.label("main")
    program.call(KTIME_GET_NS)
    program.load_constant(R1, duration_ns)
    program.add(R0, R1)
    program.store64(R10, _DEADLINE_OFFSET, R0)
    program.move(R3, R10)
    program.add_constant(R3, _DEADLINE_OFFSET)
    _loop(program, _MOST_LOOPS, "until_deadline")
    program.move_constant(R0, 0)
    program.leave()

    program.label("until_deadline")  # (number of the round, address of the deadline)
    program.move(R6, R2)
    program.move_constant(R3, 0)
    _loop(program, _INNER, "nothing")
    program.call(KTIME_GET_NS)
    program.load64(R1, R6, 0)
    program.jump_if_not_below(R0, R1, "stop")
    program.move_constant(R0, 0)
    program.leave()
    program.label("stop")
    program.move_constant(R0, 1)
    program.leave()

    program.label("nothing")
    program.move_constant(R0, 0)
    program.leave()
    return program


def _loop(program: Program, count: int, function: str) -> None:
    """bpf_loop(count, function, R3, 0): the function's second argument is R3."""
    program.move_constant(R1, count)
    program.load_function(R2, function)
    program.move_constant(R4, 0)
    program.call(LOOP)


def _bpf(command: int, attr: bytes) -> int:
    return syscall("bpf", command, ctypes.create_string_buffer(attr, len(attr)), len(attr))
