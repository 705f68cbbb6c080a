"""C++ and Rust names as people write them, by libraries: libstdc++ through cxxfilt, rust-demangler for Rust.

Names come from other people's files. Both libraries can be made to run for ever by a short name whose references unfold
exponentially, so references (C++) and steps (Rust) are bounded; a name beyond the bounds is left as it is.
"""

import re
from contextlib import suppress
from functools import lru_cache
from typing import Final

from rust_demangler.rust_legacy import LegacyDemangler
from rust_demangler.rust_v0 import Parser, Printer

from necroscope.model.names import clean

FUNCTION_LIMIT: Final = 200
_MANGLED_LIMIT: Final = 1024
# Two references a level double the text: 32 make 1.1 MB in 8 ms. Of libLLVM's 36,115 C++ names 3 have more.
_REFERENCES_LIMIT: Final = 32
_REFERENCE: Final = re.compile(r"S[0-9A-Z]*_|T[0-9]*_")
_LEGACY_RUST: Final = re.compile(r"(_ZN.*17h[0-9a-f]{16}E)(?:\.|$)", re.DOTALL)
_LEGACY_HASH: Final = re.compile(r"::h[0-9a-f]{16}$")
_STEPS_LIMIT: Final = 20_000


@lru_cache(maxsize=8192)
def demangle(name: bytes) -> str:
    """The readable form of a symbol, cleaned and bounded."""
    text = name.decode("utf-8", "backslashreplace")
    if text.startswith(("_Z", "_R")) and len(text) <= _MANGLED_LIMIT:
        # The libraries answer a malformed name with any exception there is; then the symbol itself is the answer.
        with suppress(Exception):
            text = _demangle(text) or text
    return clean(text, FUNCTION_LIMIT)


def _demangle(text: str) -> str:
    if text.startswith("_R"):
        return _demangle_v0(text[2:])
    if legacy := _LEGACY_RUST.match(text):
        return _LEGACY_HASH.sub("", str(LegacyDemangler().demangle(legacy[1])))
    if len(_REFERENCE.findall(text)) > _REFERENCES_LIMIT:
        return text
    import cxxfilt  # noqa: PLC0415  (it starts ldconfig to find libstdc++: only for those who have C++ names)

    return str(cxxfilt.demangle(text))


class _BoundedParser(Parser):  # type: ignore[misc]
    """Counts steps together with all parsers made from it."""

    def __init__(self, text: str, position: int, steps: list[int]) -> None:
        super().__init__(text, position)
        self.steps = steps

    def peek(self) -> str:
        self.step()
        return str(super().peek())

    def step(self) -> None:
        self.steps[0] += 1
        if self.steps[0] > _STEPS_LIMIT:
            raise RecursionError

    def backref(self) -> "_BoundedParser":
        return _BoundedParser(self.inn, super().backref().next_val, self.steps)


class _BoundedPrinter(Printer):  # type: ignore[misc]
    """Printer writes to stdout when a name is malformed, and prints as many lifetimes as a name asks for."""

    def invalid(self) -> None:
        raise ValueError

    def backref_printer(self) -> "_BoundedPrinter":
        return _BoundedPrinter(self.parser.backref(), self.out, self.bound_lifetime_depth)

    def print_lifetime_from_index(self, index: int) -> None:
        self.parser.step()
        if index == 0:
            self.out += "'_"
        else:
            super().print_lifetime_from_index(index)


def _demangle_v0(text: str) -> str:
    text = text.partition(".")[0]
    printer = _BoundedPrinter(_BoundedParser(text, 0, [0]), "", 0)
    printer.print_path(True)
    return str(printer.out).replace("{closure:#", "{closure#")
