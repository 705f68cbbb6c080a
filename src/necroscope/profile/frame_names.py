"""Frames of the core as rows of `frames`: names cleaned, demangled, and put next to the module they
belong to.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from necroscope.model.frame import UNKNOWN_USER, Frame
from necroscope.model.names import clean
from necroscope.model.reading import Rows
from necroscope.profile.core import Core, CoreFrame, FunctionKind
from necroscope.profile.kernel_symbols import KERNEL_MODULE
from necroscope.symbols.symbol_names import MANGLED, plain

Demangle = Callable[[Sequence[str]], Sequence[str]]

# As much of a path as is kept: the file's name is at its end, but no reader looks for it further in
# than this.
_PATH_LIMIT: Final = 300
GUEST: Final = Frame(None, "[guest]", "kernel", None, None)
BOUNDED: Final = Frame(None, "[bounded]", "user", None, None)
_FIXED: Final[dict[int, Frame]] = {
    FunctionKind.UNKNOWN: UNKNOWN_USER,
    FunctionKind.GUEST: GUEST,
    FunctionKind.BOUNDED: BOUNDED,
}


class FrameNames:
    """`demangle` makes names of C++ and Rust readable, many at a time; `build_ids` are those that
    answers brought, by module.
    """

    def __init__(self, core: Core, demangle: Demangle) -> None:
        self.build_ids: dict[int, str | None] = {}
        self._core = core
        self._demangle = demangle
        self._labels: dict[int, str] = {}
        self._given: list[Frame] = []
        self._number_given: dict[Frame, int] = {}

    def give(self, frame: Frame) -> int:
        """The number by which `Core.intern_stacks` knows a frame that has its name already."""
        number = self._number_given.get(frame)
        if number is None:
            number = self._number_given[frame] = len(self._given)
            self._given.append(frame)
        return number

    def rows(self, first: int) -> Rows:
        """The segment's frames from a number on."""
        return [(number, *frame) for number, frame in enumerate(self.fetch(first).named(), first)]

    def frames(self, numbers: Sequence[int]) -> list[Frame]:
        return self._with_labels(
            [frame for number in numbers for frame in self._core.frames(number, 1)]
        ).named()

    def fetch(self, first: int = 0) -> "FetchedFrames":
        """Frames of the core from a number on; any thread may name them, whatever the core does
        meanwhile.
        """
        return self._with_labels(self._core.frames(first))

    def _with_labels(self, found: list[CoreFrame]) -> "FetchedFrames":
        for module in {
            frame.module for frame in found if frame.kind == FunctionKind.USER
        } - self._labels.keys():
            self._label(module)
        return FetchedFrames(found, self._labels, self.build_ids, self._given, self._demangle)

    def stack(self, number: int) -> list[Frame]:
        """The frames of a stack of this segment, innermost first."""
        parents, frames = (memoryview(column).cast("i") for column in self._core.stacks())
        found = []
        while 0 <= number < len(parents):
            found.append(frames[number])
            number = parents[number]
        return self.frames(found)

    def forget(self) -> None:
        """Modules may have other numbers from now on."""
        self.build_ids, self._labels = {}, {}

    def _label(self, number: int) -> None:
        module = self._core.module(number)
        self._labels[number] = clean(module.path, _PATH_LIMIT)
        self.build_ids[number] = self.build_ids.get(number) or module.build_id


class FetchedFrames(NamedTuple):
    """Frames of the core, and what their names are made of; frames that were given have their names
    already.
    """

    frames: list[CoreFrame]
    labels: dict[int, str]
    build_ids: dict[int, str | None]
    given: list[Frame]
    demangle: Demangle

    def named(self) -> list[Frame]:
        found = [self._frame(frame) for frame in self.frames]
        mangled = sorted(
            {
                frame.function
                for frame in found
                if frame.function and frame.function.startswith(MANGLED)
            }
        )
        if not mangled:
            return found
        readable = dict(zip(mangled, self.demangle(mangled), strict=True))
        return [
            frame._replace(function=readable.get(frame.function or "", frame.function))
            for frame in found
        ]

    def unnamed_modules(self) -> Iterator[str | None]:
        """The module of each frame that has no function, None for the others."""
        for frame in self.frames:
            if frame.name:
                yield None
            elif frame.kind == FunctionKind.USER:
                yield self.labels[frame.module]
            else:
                named = self._frame(frame)
                yield named.module if named.function is None else None

    def _frame(self, frame: CoreFrame) -> Frame:
        kind, module, name, offset = frame
        if kind == FunctionKind.USER:
            function = plain(name) if name else None
            return Frame(
                function,
                self.labels[module],
                "user",
                _to_signed(offset),
                self.build_ids.get(module),
            )
        if kind == FunctionKind.KERNEL:
            symbol, _, kernel_module = name.partition(b"\t")
            return Frame(
                plain(symbol) or None,
                plain(kernel_module) or KERNEL_MODULE,
                "kernel",
                _to_signed(offset),
                None,
            )
        if kind == FunctionKind.JIT:
            return Frame(plain(name) or None, "[jit]", "jit", None, None)
        return self.given[offset or 0] if kind == FunctionKind.GIVEN else _FIXED[kind]


def _to_signed(offset: int | None) -> int | None:
    """As the signed 64 bits that a column holds: addresses of the kernel are negative."""
    return offset - (1 << 64) if offset is not None and offset >= 1 << 63 else offset
