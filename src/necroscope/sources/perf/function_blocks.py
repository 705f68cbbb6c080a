"""Functions of files, kept 16 KiB at a time: one answer of the lookup process serves all that lies near."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable
from typing import Final

from necroscope.symbols.messages import BLOCK_BITS, FunctionBlock

# Names of C++ are long: 100,000 functions of C take so much, or 30,000 of those.
MOST_BYTES: Final = 4 << 20
_BLOCK_BYTES: Final = 500
_FUNCTION_BYTES: Final = 6
_WITHIN: Final = (1 << BLOCK_BITS) - 1
_UNNUMBERED: Final = -1


class _Block:
    """Where each name begins to hold, and the frame made of it. The names are one text, a third of what they take as a list."""

    __slots__ = ("_frames", "_names", "_starts")

    def __init__(self, functions: FunctionBlock) -> None:
        self._starts = array("H", functions.starts)
        self._names = "\n".join([name or "" for name in functions.names])
        self._frames = array("i", [_UNNUMBERED]) * len(self._starts)

    @property
    def size_bytes(self) -> int:
        return _BLOCK_BYTES + _FUNCTION_BYTES * len(self._starts) + len(self._names)

    def frame(self, within: int, make: Callable[[str], int]) -> int | None:
        at = bisect_right(self._starts, within) - 1
        number = self._frames[at]
        if number == _UNNUMBERED:
            name = self._names.split("\n", at + 1)[at]
            if not name:
                return None
            number = self._frames[at] = make(name)
        return number


class FunctionBlocks:
    """Frames by owner (a file) and offset. The oldest answers are forgotten when there are too many."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[Hashable, int], _Block] = {}
        self.size_bytes = 0

    def knows(self, owner: Hashable, address: int) -> bool:
        return (owner, address >> BLOCK_BITS) in self._blocks

    def frame(self, owner: Hashable, address: int, make: Callable[[str], int]) -> int | None:
        """None where no function is. `make` gives the number of the frame of a name, -1 if it has none yet."""
        return self._blocks[owner, address >> BLOCK_BITS].frame(address & _WITHIN, make)

    def add(self, owner: Hashable, block: int, functions: FunctionBlock) -> None:
        self.drop([(owner, block)])
        known = self._blocks[owner, block] = _Block(functions)
        self.size_bytes += known.size_bytes

    def bound(self) -> None:
        """Not while an answer that was asked for is still to be used."""
        while self.size_bytes > MOST_BYTES:
            self.drop([next(iter(self._blocks))])

    def drop(self, keys: Iterable[tuple[Hashable, int]]) -> None:
        for key in keys:
            block = self._blocks.pop(key, None)
            if block is not None:
                self.size_bytes -= block.size_bytes

    def clear(self) -> None:
        self._blocks.clear()
        self.size_bytes = 0
