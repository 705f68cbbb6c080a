"""Functions known block by block: which one an address lies in, how often a frame is made, how much is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from necroscope.sources.perf import function_blocks
from necroscope.sources.perf.function_blocks import FunctionBlocks
from necroscope.symbols.messages import BLOCK_BITS, FunctionBlock

BLOCK_BYTES = 1 << BLOCK_BITS


class Frames:
    """Numbers for names, and how often each was asked for."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def __call__(self, name: str) -> int:
        self.made.append(name)
        return len(self.made) - 1


def test_an_address_belongs_to_the_function_that_begins_before_it() -> None:
    blocks, frames = FunctionBlocks(), Frames()
    blocks.add("/a", 3, FunctionBlock([0, 16, 32], [None, "one", "two"]))
    low = 3 << BLOCK_BITS
    found = [blocks.frame("/a", low + within, frames) for within in (0, 15, 16, 31, 32, BLOCK_BYTES - 1, 16)]
    assert found == [None, None, 0, 0, 1, 1, 0]
    assert frames.made == ["one", "two"], "each function makes its frame once"


def test_blocks_of_different_owners_and_numbers_are_apart() -> None:
    blocks = FunctionBlocks()
    blocks.add("/a", 3, FunctionBlock([0], ["f"]))
    asked = [("/a", 3 << BLOCK_BITS), ("/a", (4 << BLOCK_BITS) - 1), ("/a", 4 << BLOCK_BITS), ("/b", 3 << BLOCK_BITS)]
    assert [blocks.knows(*place) for place in asked] == [True, True, False, False]


@given(st.dictionaries(st.integers(1, BLOCK_BYTES - 1), st.none() | st.text("xyz µ_", min_size=1), max_size=8))
def test_every_address_has_the_name_that_began_last(functions: dict[int, str | None]) -> None:
    starts = [0, *sorted(functions)]
    names = [None, *(functions[start] for start in sorted(functions))]
    blocks, frames = FunctionBlocks(), Frames()
    blocks.add("/a", 0, FunctionBlock(starts, names))
    for within in sorted({0, BLOCK_BYTES - 1, *starts, *(start - 1 for start in starts[1:])}):
        expected = next(name for start, name in zip(reversed(starts), reversed(names), strict=True) if start <= within)
        number = blocks.frame("/a", within, frames)
        assert (None if number is None else frames.made[number]) == expected


def test_the_oldest_answers_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = FunctionBlocks()
    for block in range(4):
        blocks.add("/a", block, FunctionBlock([0, 16], ["f", "g" * 1000]))
    monkeypatch.setattr(function_blocks, "MOST_BYTES", blocks.size_bytes * 5 // 8)
    blocks.bound()
    assert [blocks.knows("/a", block << BLOCK_BITS) for block in range(4)] == [False, False, True, True]
    assert 2000 < blocks.size_bytes <= function_blocks.MOST_BYTES


def test_what_is_dropped_or_replaced_counts_no_more() -> None:
    blocks = FunctionBlocks()
    for owner in ("/a", "/b"):
        blocks.add(owner, 1, FunctionBlock([0, 16], ["f", "g"]))
    both = blocks.size_bytes
    blocks.drop([("/a", 1), ("/a", 7)])
    assert (blocks.knows("/a", BLOCK_BYTES), blocks.knows("/b", BLOCK_BYTES)) == (False, True)
    assert 2 * blocks.size_bytes == both
    blocks.add("/b", 1, FunctionBlock([0, 16], ["f", "g"]))
    assert 2 * blocks.size_bytes == both, "it took the place of the one before"
    blocks.clear()
    assert (blocks.knows("/b", BLOCK_BYTES), blocks.size_bytes) == (False, 0)
