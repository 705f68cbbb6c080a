"""The kernel's functions for the native core, by blocks of addresses: kallsyms, and code that was
loaded since it was read.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from necroscope.errors import SourceUnavailable
from necroscope.model.names import clean
from necroscope.profile.core import KERNEL, Core
from necroscope.symbols.messages import (
    BLOCK_BITS,
    NO_FUNCTION,
    FunctionBlock,
    pack_block,
    unpack_block,
)

# Agents that load programs all the time are named by kallsyms; of the last ones the kernel's own
# records tell.
_MOST_LOADED: Final = 256
_BPF: Final = b"[bpf]"
_BLOCK_BYTES: Final = 1 << BLOCK_BITS


class Symbols(Protocol):
    """What is asked of `kernel_symbols.KernelSymbols`. `core_text` are the addresses of what cannot
    come and go.
    """

    core_text: tuple[int, int]

    def block(self, number: int) -> FunctionBlock: ...

    def ranges(self, names: Iterable[str]) -> list[tuple[int, int]]: ...


class KernelFunctions:
    """`read` gives kallsyms, which takes a twentieth of a second: at the first question, and when
    it may have changed.

    A node that starts BPF programs with every unit must not make us read it each time: the kernel's
    records name them. It is read again only when an address outside of the kernel's own text is
    sampled after a change that has no record, and `may_reload` is true, which the caller makes it
    now and then.
    """

    def __init__(self, core: Core, read: Callable[[], Symbols]) -> None:
        self.may_reload = True
        self._core = core
        self._read = read
        self._symbols: Symbols | None = None
        self._hidden: SourceUnavailable | None = None
        self._is_stale = False
        self._loaded: dict[tuple[int, int], bytes] = {}

    @property
    def hidden(self) -> str | None:
        """Why there are no kernel symbols, with the way out; None if there are some, or before the
        first question.
        """
        return None if self._hidden is None else f"{self._hidden.facts} ({self._hidden.hint})"

    @property
    def symbols(self) -> Symbols | None:
        if self._symbols is None and self._hidden is None:
            self._reload()
        return self._symbols

    def name(self, address: int) -> str | None:
        """The function that lies at an address, for the few that no sample had."""
        number, offset = divmod(address, _BLOCK_BYTES)
        names = [name for start, name in unpack_block(self._functions(number)) if start <= offset]
        return clean(names[-1].partition(b"\t")[0]) or None if names else None

    def answer(self, block: int) -> None:
        self._core.learn_block(KERNEL, block, self._functions(block))

    def load(self, start: int, length: int, name: bytes) -> None:
        """Code that the kernel has just got: a BPF program, a trampoline."""
        self._loaded.pop((start, start + length), None)  # the newest comes last
        self._loaded[start, start + length] = name
        while len(self._loaded) > _MOST_LOADED:
            del self._loaded[next(iter(self._loaded))]
            self._is_stale = True
        self._forget_changeable()

    def unload(self, start: int, length: int) -> None:
        self._loaded.pop((start, start + length), None)
        self._forget_changeable()

    def note_change(self) -> None:
        """Modules, or BPF programs of which no record told, came or went: what is not the kernel's
        own text may mean something else now.
        """
        self._is_stale = True
        self._forget_changeable()

    def _forget_changeable(self) -> None:
        core_blocks = _core_blocks(self._symbols)
        self._core.forget_blocks(KERNEL, outside=(core_blocks.start, core_blocks.stop))

    def _reload(self) -> None:
        self._is_stale = False
        try:
            self._symbols, self._hidden = self._read(), None
        except SourceUnavailable as error:
            self._symbols, self._hidden = None, error

    def _functions(self, number: int) -> FunctionBlock:
        low = number << BLOCK_BITS
        symbols = self.symbols
        if (
            symbols is not None
            and self._is_stale
            and self.may_reload
            and number not in _core_blocks(symbols)
        ):
            self.may_reload = False
            self._reload()
            # Others may have been answered since the change, when it was too early to read them.
            self._forget_changeable()
            symbols = self._symbols
        block = NO_FUNCTION if symbols is None else symbols.block(number)
        for (start, end), name in self._loaded.items():
            if max(start, low) < min(end, low + _BLOCK_BYTES):
                block = _laid_over(block, max(start - low, 0), end - low, b"%s\t%s" % (name, _BPF))
        return block


def _core_blocks(symbols: Symbols | None) -> range:
    """The blocks in which nothing but the kernel's own text lies, which stays as it is."""
    start, end = symbols.core_text if symbols is not None else (0, 0)
    return range(-(-start >> BLOCK_BITS), end >> BLOCK_BITS)


def _laid_over(block: FunctionBlock, start: int, end: int, name: bytes) -> FunctionBlock:
    """With this function from `start` to `end`, counted from the block's start; what it covers of
    another goes on behind it.
    """
    functions = unpack_block(block)
    found = {at: other for at, other in functions if not start <= at < end}
    found[start] = name
    if end < _BLOCK_BYTES:
        covered = [other for at, other in functions if at <= end]
        found.setdefault(end, covered[-1])
    return pack_block(sorted(found.items()))
