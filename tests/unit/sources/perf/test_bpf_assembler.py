"""Instructions byte for byte, as include/uapi/linux/bpf.h and filter.h encode them."""

import pytest

from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf.bpf_assembler import Program

# What clang and the kernel's own macros give for each.
ENCODINGS = [
    ("r0 = 0", lambda p: p.move_constant(bpf.R0, 0), "b7 00 0000 00000000"),
    ("r2 = -1", lambda p: p.move_constant(bpf.R2, -1), "b7 02 0000 ffffffff"),
    ("r6 = r1", lambda p: p.move(bpf.R6, bpf.R1), "bf 16 0000 00000000"),
    ("exit", lambda p: p.leave(), "95 00 0000 00000000"),
    ("r1 = map 5 ll", lambda p: p.load_map(bpf.R1, 5), "18 11 0000 05000000 00 00 0000 00000000"),
    (
        "r1 = value of map 5 ll",
        lambda p: p.load_map_value(bpf.R1, 5),
        "18 21 0000 05000000 00 00 0000 00000000",
    ),
    (
        "r1 = 0xffffffff81001d1e ll",
        lambda p: p.load_constant(bpf.R1, 0xFFFFFFFF81001D1E),
        "18 01 0000 1e1d0081 00 00 0000 ffffffff",
    ),
    ("r6 = *(u32 *)(r1 + 8)", lambda p: p.load32(bpf.R6, bpf.R1, 8), "61 16 0800 00000000"),
    ("r8 = *(u64 *)(r7 + 0)", lambda p: p.load64(bpf.R8, bpf.R7, 0), "79 78 0000 00000000"),
    ("*(u32 *)(r10 - 4) = 0", lambda p: p.store32_constant(bpf.R10, -4, 0), "62 0a fcff 00000000"),
    ("*(u64 *)(r7 + 8) = r1", lambda p: p.store64(bpf.R7, 8, bpf.R1), "7b 17 0800 00000000"),
    ("*(u64 *)(r7 + 0) = 0", lambda p: p.store64_constant(bpf.R7, 0, 0), "7a 07 0000 00000000"),
    ("r2 *= r3", lambda p: p.multiply(bpf.R2, bpf.R3), "2f 32 0000 00000000"),
    ("r4 /= r3", lambda p: p.divide(bpf.R4, bpf.R3), "3f 34 0000 00000000"),
    ("r7 += r1", lambda p: p.add(bpf.R7, bpf.R1), "0f 17 0000 00000000"),
    ("r2 += -4", lambda p: p.add_constant(bpf.R2, -4), "07 02 0000 fcffffff"),
    ("r9 -= r8", lambda p: p.subtract(bpf.R9, bpf.R8), "1f 89 0000 00000000"),
    ("r1 *= 200", lambda p: p.multiply_constant(bpf.R1, 200), "27 01 0000 c8000000"),
    ("r2 <<= 3", lambda p: p.shift_left(bpf.R2, 3), "67 02 0000 03000000"),
    ("r1 >>= 10", lambda p: p.shift_right(bpf.R1, 10), "77 01 0000 0a000000"),
    ("call 1", lambda p: p.call(bpf.MAP_LOOKUP), "85 00 0000 01000000"),
    ("call 5", lambda p: p.call(bpf.KTIME_GET_NS), "85 00 0000 05000000"),
    ("call 8", lambda p: p.call(bpf.GET_SMP_PROCESSOR_ID), "85 00 0000 08000000"),
    ("call 14", lambda p: p.call(bpf.GET_CURRENT_PID_TGID), "85 00 0000 0e000000"),
]
JUMPS = [
    ("if r0 == 0", lambda p: p.jump_if_equal(bpf.R0, 0, "end"), "15 00"),
    ("if r8 != 0", lambda p: p.jump_if_not_equal(bpf.R8, 0, "end"), "55 08"),
    ("if r6 > 0", lambda p: p.jump_if_above(bpf.R6, 0, "end"), "25 06"),
    ("if r1 <= 0", lambda p: p.jump_if_at_most(bpf.R1, 0, "end"), "b5 01"),
    ("if r1 > r6", lambda p: p.jump_if_above_register(bpf.R1, bpf.R6, "end"), "2d 61"),
    ("if r2 >= r9", lambda p: p.jump_if_not_below(bpf.R2, bpf.R9, "end"), "3d 92"),
]


@pytest.mark.parametrize(
    ("text", "write", "expected"), ENCODINGS, ids=[text for text, *_ in ENCODINGS]
)
def test_instructions_are_encoded_as_the_kernel_reads_them(
    text: str, write: object, expected: str
) -> None:
    program = Program()
    write(program)  # type: ignore[operator]
    assert program.code() == bytes.fromhex(expected)


@pytest.mark.parametrize(("text", "write", "opcode"), JUMPS, ids=[text for text, *_ in JUMPS])
def test_a_jump_counts_the_instructions_it_skips(text: str, write: object, opcode: str) -> None:
    program = Program()
    write(program)  # type: ignore[operator]
    program.load_map(bpf.R1, 3)
    program.label("end")
    program.leave()
    assert program.code()[:8] == bytes.fromhex(f"{opcode} 0200 00000000")


def test_a_jump_to_the_next_instruction_skips_none() -> None:
    program = Program()
    program.jump_if_equal(bpf.R0, 7, "next")
    program.label("next")
    program.leave()
    assert program.code()[:8] == bytes.fromhex("15 00 0000 07000000")


def test_a_label_nobody_set_is_an_error() -> None:
    program = Program()
    program.jump_if_equal(bpf.R0, 0, "nowhere")
    with pytest.raises(KeyError):
        program.code()


def test_a_label_has_one_place() -> None:
    program = Program()
    program.label("out")
    with pytest.raises(ValueError, match="out"):
        program.label("out")


def test_a_function_is_named_by_its_distance_from_the_load_that_names_it() -> None:
    program = Program()
    program.move_constant(bpf.R1, 7)
    program.load_function(bpf.R2, "callback")
    program.leave()
    program.label("callback")
    program.leave()
    assert program.position("callback") == 4
    assert program.code()[8:16].hex(" ") == "18 42 00 00 02 00 00 00"
