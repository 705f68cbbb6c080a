"""Keeps softirqs off on the core it runs on, for a chosen time: a BPF program that only loops, run
by BPF_PROG_TEST_RUN.

The kernel holds local_bh_disable() around a test run (net/bpf/test_run.c), so that nothing but hard
interrupts gets in while the program loops: what a driver does that keeps a spin_lock_bh too long,
without a driver. Two nested bpf_loop() calls make it long enough; their callbacks are functions of
the program, for which the kernel wants types (BTF, Documentation/bpf/btf.rst).
"""

import ctypes
import os
import struct
from typing import Final, Self

from necroscope.model.units import NS_PER_S
from necroscope.perf_abi.syscalls import syscall

_PROG_LOAD, _PROG_TEST_RUN, _BTF_LOAD = 5, 10, 18
_SCHED_CLS: Final = 3
_LOOP: Final = 181  # the number of the function bpf_loop
_DURATION_OFFSET: Final = 36  # of `duration` in the attributes of a test run
_INNER: Final = 1 << 20
_CALIBRATION: Final = 16
# Below what a network driver bears (5 s), and far below what makes the kernel complain of a soft
# lockup (20 s).
LONGEST_S: Final = 4.0
_MOST_OUTER: Final = 1 << 16


class SoftirqHold:
    """Measures once how fast the loop is here, then holds for about as long as it is asked to."""

    def __init__(self, longest_s: float = LONGEST_S) -> None:
        self._longest_s = longest_s
        self._btf = _load_types()
        self._s_per_round = self._run(_CALIBRATION) / _CALIBRATION

    def hold(self, seconds: float) -> float:
        """How long it was in fact, in seconds."""
        return self._run(
            max(1, min(int(min(seconds, self._longest_s) / self._s_per_round), _MOST_OUTER))
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._btf)

    def _run(self, rounds: int) -> float:
        program = _load_program(rounds, self._btf)
        packet = ctypes.create_string_buffer(64)
        content = struct.pack(
            "<IIIIQQII", program, 0, 64, 0, ctypes.addressof(packet), 0, 1, 0
        ) + bytes(32)
        attr = ctypes.create_string_buffer(content, len(content))
        try:
            syscall("bpf", _PROG_TEST_RUN, attr, len(attr))
        finally:
            os.close(program)
        # The kernel's own figure: by the clock on the wall the loop seems four times as slow where
        # others wait for the core, for they get it as soon as the run is over.
        return int(struct.unpack_from("<I", attr, _DURATION_OFFSET)[0]) / NS_PER_S


def _load_types() -> int:
    """int, and three functions `int f(void)`: the program and the two callbacks."""
    names = b"\0int\0main\0outer\0inner\0"
    types = struct.pack("<IIII", 1, 1 << 24, 4, 1 << 24 | 32)  # int, 4 bytes, signed, 32 bits
    types += struct.pack("<III", 0, 13 << 24, 1)  # a prototype that returns it
    types += b"".join(
        struct.pack("<III", names.index(name), 12 << 24, 2)
        for name in (b"main", b"outer", b"inner")
    )
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(names))
    data = ctypes.create_string_buffer(header + types + names, 24 + len(types) + len(names))
    return _bpf(
        _BTF_LOAD, struct.pack("<QQIII", ctypes.addressof(data), 0, len(data), 0, 0) + bytes(4)
    )


def _load_program(rounds: int, btf: int) -> int:
    """main calls `outer` this many times, each calls `inner` a million times, which returns 0: go
    on.
    """
    loops = [*_loop(rounds, callback=8 - 1), *_loop(_INNER, callback=16 - 9)]
    instructions = b"".join([*loops, _instruction(0xB7), _instruction(0x95)])
    code = ctypes.create_string_buffer(instructions, len(instructions))
    licence = ctypes.create_string_buffer(b"GPL")
    functions = struct.pack("<IIIIII", 0, 3, 8, 4, 16, 5)  # instruction and type of each function
    info = ctypes.create_string_buffer(functions, len(functions))
    attr = struct.pack(
        "<IIQQIIQII16sIIIIQI4x",
        *(
            _SCHED_CLS,
            len(instructions) // 8,
            ctypes.addressof(code),
            ctypes.addressof(licence),
            0,
            0,
            0,
            0,
            0,
            b"",
        ),
        *(0, 0, btf, 8, ctypes.addressof(info), 3),
    )
    return _bpf(_PROG_LOAD, attr)


def _loop(count: int, callback: int) -> list[bytes]:
    """bpf_loop(count, callback, NULL, 0); return 0. The callback is named by its distance from the
    load that names it.
    """
    return [
        _instruction(0xB7, 1, constant=count),
        _instruction(0x18, 2, 4, constant=callback - 1),
        _instruction(0),
        _instruction(0xB7, 3),
        _instruction(0xB7, 4),
        _instruction(0x85, constant=_LOOP),
        _instruction(0xB7),
        _instruction(0x95),
    ]


def _instruction(opcode: int, register: int = 0, source: int = 0, constant: int = 0) -> bytes:
    return struct.pack("<BBhi", opcode, register | source << 4, 0, constant)


def _bpf(command: int, attr: bytes) -> int:
    return syscall("bpf", command, ctypes.create_string_buffer(attr, len(attr)), len(attr))
