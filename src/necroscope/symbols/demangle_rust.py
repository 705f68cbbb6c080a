"""Rust names, legacy and v0, by rust-demangler, with bounds that it lacks. A malformed name gives
any exception there is.
"""

import re
from typing import Final

from rust_demangler.rust_legacy import LegacyDemangler
from rust_demangler.rust_v0 import Parser, Printer

_LEGACY_HASH: Final = re.compile(r"::h[0-9a-f]{16}$")
_STEPS_LIMIT: Final = 20_000


def demangle_legacy(text: str) -> str:
    return _LEGACY_HASH.sub("", str(LegacyDemangler().demangle(text)))


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
    """Printer writes to stdout when a name is malformed, and prints as many lifetimes as a name
    asks for.
    """

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


def demangle_v0(text: str) -> str:
    text = text.partition(".")[0]
    printer = _BoundedPrinter(_BoundedParser(text, 0, [0]), "", 0)
    printer.print_path(True)
    return str(printer.out).replace("{closure:#", "{closure#")
