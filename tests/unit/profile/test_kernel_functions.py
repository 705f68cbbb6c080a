"""Blocks of the kernel's functions: code that was loaded lies over what kallsyms says, and what may
change is asked for again.
"""

from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from operator import itemgetter
from tempfile import TemporaryFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from necroscope.errors import SourceUnavailable
from necroscope.profile import kernel_functions
from necroscope.profile.core import KERNEL
from necroscope.profile.kernel_functions import KernelFunctions
from necroscope.profile.kernel_symbols import KernelSymbols
from necroscope.symbols.messages import BLOCK_BITS, FunctionBlock, unpack_block

BLOCK_BYTES = 1 << BLOCK_BITS
# The kernel's own text begins and ends within a block, as it may.
TEXT = 0xFFFFFFFF81000000 + 0x100
TEXT_END = TEXT + 8 * BLOCK_BYTES
MODULES = 0xFFFFFFFFC0000000


class FakeCore:
    """Keeps blocks as the native core does: the first answer stays until it is forgotten, and a
    malformed one is an error.
    """

    def __init__(self) -> None:
        self.blocks: dict[int, list[tuple[int, bytes]]] = {}

    def learn_block(self, module: int, block: int, functions: FunctionBlock) -> None:
        assert module == KERNEL
        known = unpack_block(functions)
        assert known[0][0] == 0
        assert all(one < other for (one, _), (other, _) in pairwise(known))
        assert known[-1][0] < BLOCK_BYTES
        self.blocks.setdefault(block, known)

    def forget_blocks(self, module: int, outside: tuple[int, int]) -> None:
        assert module == KERNEL
        self.blocks = {
            block: known for block, known in self.blocks.items() if outside[0] <= block < outside[1]
        }


class Kernel:
    """kallsyms as it was read, and as it would be read now; names are asked for as the core
    asks.
    """

    def __init__(self, *lines: tuple[int, str], is_hidden: bool = False) -> None:
        self.now = (*lines, (TEXT, "_stext"), (TEXT_END, "_etext"))
        self.reloads = -1  # the first reading is none
        self.is_hidden = is_hidden
        self.core = FakeCore()
        self.functions = KernelFunctions(self.core, self.read)  # type: ignore[arg-type]
        assert self.functions.symbols is not None or is_hidden

    def read(self) -> KernelSymbols:
        if self.is_hidden:
            raise SourceUnavailable("hidden", "show them")
        self.reloads += 1
        with TemporaryFile() as file:
            for address, name in sorted(self.now):
                file.write(b"%016x T %s\n" % (address, name.encode()))
            file.seek(0)
            return KernelSymbols(file.fileno())

    def name(self, address: int) -> str:
        block, within = address >> BLOCK_BITS, address & (BLOCK_BYTES - 1)
        if block not in self.core.blocks:
            self.functions.answer(block)
        known = self.core.blocks[block]
        return known[bisect_right(known, within, key=itemgetter(0)) - 1][1].decode()

    def block(self, address: int) -> list[tuple[int, str]]:
        """The functions of the block at an address, by how far they lie behind it."""
        self.name(address)
        return [(start, name.decode()) for start, name in self.core.blocks[address >> BLOCK_BITS]]


def test_functions_of_kallsyms_are_given_by_blocks() -> None:
    kernel = Kernel((TEXT + 0x200, "one"), (TEXT + 0x300, "two"))
    assert kernel.block(TEXT) == [(0, ""), (0x100, "_stext"), (0x300, "one"), (0x400, "two")]
    assert kernel.block(TEXT + BLOCK_BYTES) == [(0, "two")]
    assert kernel.block(MODULES) == [(0, "")]


def test_without_symbols_nothing_has_a_name_but_what_was_loaded() -> None:
    kernel = Kernel(is_hidden=True)
    kernel.functions.load(MODULES + 0x40, 0x10, b"bpf_prog_1")
    assert kernel.block(MODULES) == [(0, ""), (0x40, "bpf_prog_1\t[bpf]"), (0x50, "")]
    assert kernel.block(TEXT) == [(0, "")]
    assert kernel.functions.hidden == "hidden (show them)"


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, 0x40, [(0, "new"), (0x40, "old")]),
        (0x100, 0x40, [(0, "old"), (0x100, "new"), (0x140, "old")]),
        (BLOCK_BYTES - 0x40, 0x40, [(0, "old"), (BLOCK_BYTES - 0x40, "new")]),
        (0, BLOCK_BYTES, [(0, "new")]),
        (-0x40, 0x80, [(0, "new"), (0x40, "old")]),
        (-0x40, 0x40, [(0, "old")]),
        (BLOCK_BYTES - 0x40, 0x80, [(0, "old"), (BLOCK_BYTES - 0x40, "new")]),
        (BLOCK_BYTES, 0x40, [(0, "old")]),
        (-BLOCK_BYTES, 3 * BLOCK_BYTES, [(0, "new")]),
        (0x100, 0, [(0, "old")]),
    ],
    ids=[
        "start",
        "middle",
        "end",
        "whole",
        "into",
        "up to",
        "out of",
        "behind",
        "across",
        "no length",
    ],
)
def test_loaded_code_lies_over_its_part_of_a_block(
    start: int, length: int, expected: list[tuple[int, str]]
) -> None:
    kernel = Kernel((MODULES - 2 * BLOCK_BYTES, "old"))
    kernel.functions.may_reload = False
    kernel.functions.load(MODULES + start, length, b"new")
    assert [(at, name.removesuffix("\t[bpf]")) for at, name in kernel.block(MODULES)] == expected


def test_code_across_two_blocks_is_named_in_both() -> None:
    kernel = Kernel()
    end = MODULES + BLOCK_BYTES
    kernel.functions.load(end - 0x20, 0x60, b"long")
    assert kernel.block(MODULES) == [(0, ""), (BLOCK_BYTES - 0x20, "long\t[bpf]")]
    assert kernel.block(end) == [(0, "long\t[bpf]"), (0x40, "")]


def test_code_over_functions_hides_them_and_what_begins_at_its_end_stays() -> None:
    kernel = Kernel(*((MODULES + at, f"f_{at:x}") for at in (0, 0x100, 0x140, 0x200, 0x300)))
    kernel.functions.load(MODULES + 0x80, 0x180, b"new")
    kernel.functions.load(MODULES + 0x300, 0x10, b"other")
    assert kernel.block(MODULES) == [
        (0, "f_0"),
        (0x80, "new\t[bpf]"),
        (0x200, "f_200"),
        (0x300, "other\t[bpf]"),
        (0x310, "f_300"),
    ]


def test_of_code_at_one_place_the_newest_is_named() -> None:
    """The record of what was there before may have been lost."""
    kernel = Kernel()
    for start, length, name in ((0, 0x80, b"first"), (0x40, 0x80, b"second"), (0, 0x80, b"third")):
        kernel.functions.load(MODULES + start, length, name)
    assert kernel.block(MODULES) == [(0, "third\t[bpf]"), (0x80, "second\t[bpf]"), (0xC0, "")]


def test_code_that_went_has_its_name_no_more() -> None:
    kernel = Kernel((MODULES, "old"))
    kernel.functions.load(MODULES + 0x40, 0x40, b"new")
    assert kernel.name(MODULES + 0x40) == "new\t[bpf]"
    kernel.functions.unload(MODULES + 0x40, 0x40)
    kernel.functions.unload(MODULES + 0x80, 0x40)
    assert kernel.block(MODULES) == [(0, "old")]


def test_only_the_last_programs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_functions, "_MOST_LOADED", 2)
    kernel = Kernel()
    for number in (0, 1, 0, 2):
        kernel.functions.load(MODULES + 0x40 * number, 0x40, b"p%d" % number)
    assert kernel.block(MODULES) == [(0, "p0\t[bpf]"), (0x40, ""), (0x80, "p2\t[bpf]"), (0xC0, "")]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-40, 140), st.integers(0, 120)), max_size=6),
    st.lists(st.integers(0, 99), max_size=6),
)
def test_every_address_has_the_name_of_what_came_last(
    programs: list[tuple[int, int]], symbols: list[int]
) -> None:
    step = BLOCK_BYTES // 100
    kernel = Kernel(*((MODULES + step * at, f"f_{at}") for at in set(symbols)))
    kernel.functions.may_reload = False
    for start, length in programs:
        kernel.functions.load(MODULES + step * start, step * length, b"%d+%d" % (start, length))
    for at in range(100):
        loaded = [
            f"{start}+{length}\t[bpf]"
            for start, length in _newest_last(programs)
            if start <= at < start + length
        ]
        known = [f"f_{begin}" for begin in sorted(symbols) if begin <= at]
        assert kernel.name(MODULES + step * at) == ["", *known, *loaded][-1]


def _newest_last(programs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return list(dict.fromkeys(reversed(programs)))[::-1]


def test_kallsyms_is_read_again_for_the_first_address_outside_of_the_kernels_text_after_a_change() -> (
    None
):
    kernel = Kernel((TEXT, "core"))
    kernel.now += ((MODULES, "module"),)
    assert kernel.name(MODULES) == ""
    kernel.functions.note_change()
    assert kernel.name(TEXT + BLOCK_BYTES) == "core"
    assert kernel.reloads == 0, "the kernel's own text stays as it is"
    assert kernel.name(MODULES) == "module"
    assert kernel.name(MODULES + BLOCK_BYTES) == "module"
    assert kernel.reloads == 1


def test_kallsyms_is_not_read_again_without_a_change_or_too_early() -> None:
    kernel = Kernel()
    assert kernel.name(MODULES) == ""
    kernel.functions.may_reload = False
    kernel.now += ((MODULES, "module"),)
    kernel.functions.note_change()
    assert kernel.name(MODULES) == ""
    assert kernel.reloads == 0


def test_code_that_the_kernels_records_name_does_not_make_it_read_kallsyms_again() -> None:
    kernel = Kernel()
    assert kernel.name(MODULES) == ""
    kernel.functions.load(MODULES, 0x40, b"bpf_prog_1")
    assert kernel.name(MODULES) == "bpf_prog_1\t[bpf]"
    kernel.functions.unload(MODULES, 0x40)
    assert kernel.name(MODULES) == ""
    assert kernel.reloads == 0


def test_kallsyms_is_read_again_when_more_programs_were_loaded_than_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel_functions, "_MOST_LOADED", 1)
    kernel = Kernel()
    assert kernel.name(MODULES) == ""
    kernel.now += ((MODULES, "bpf_prog_0"),)
    for number in range(2):
        kernel.functions.load(MODULES + 0x40 * number, 0x40, b"bpf_prog_%d" % number)
    assert kernel.name(MODULES) == "bpf_prog_0"
    assert kernel.reloads == 1


def test_what_was_answered_before_kallsyms_could_be_read_is_asked_for_again() -> None:
    kernel = Kernel()
    kernel.functions.may_reload = False
    kernel.now += ((MODULES, "module"),)
    kernel.functions.note_change()
    assert kernel.name(MODULES) == ""
    kernel.functions.may_reload = True
    assert kernel.name(MODULES + BLOCK_BYTES) == "module"
    assert kernel.name(MODULES) == "module"
    assert (kernel.reloads, kernel.functions.may_reload) == (1, False)


@pytest.mark.parametrize(
    "change",
    [
        lambda functions: functions.note_change(),
        lambda functions: functions.load(MODULES, 16, b"p"),
        lambda functions: functions.unload(MODULES, 16),
    ],
    ids=["modules", "load", "unload"],
)
def test_a_change_forgets_all_blocks_but_those_of_the_kernels_text(
    change: Callable[[KernelFunctions], None],
) -> None:
    kernel = Kernel()
    wholly_text = {TEXT + number * BLOCK_BYTES >> BLOCK_BITS for number in range(1, 8)}
    for address in (*range(TEXT - BLOCK_BYTES, TEXT_END + 2 * BLOCK_BYTES, BLOCK_BYTES), MODULES):
        kernel.name(address)
    assert wholly_text < set(kernel.core.blocks)
    change(kernel.functions)
    assert set(kernel.core.blocks) == wholly_text


def test_where_the_text_is_not_known_every_block_is_forgotten() -> None:
    kernel = Kernel(is_hidden=True)
    kernel.name(TEXT + BLOCK_BYTES)
    kernel.functions.note_change()
    assert kernel.core.blocks == {}
