"""Numbers that decide, each with its reason: the docs print them, and `lab score --vary` scales
them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit and the reason for it; a share of 0 to 1 unless its name ends with a unit."""

    value: float
    reason: str


class Thresholds:
    """The limits of one rule, by name: `case.limits.least` is the value of `least`."""

    def __init__(self, **known: Threshold) -> None:
        self._known = known

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._known[name].value

    def __getitem__(self, name: str) -> float:
        return self._known[name].value

    def __iter__(self) -> Iterator[tuple[str, Threshold]]:
        return iter(self._known.items())

    def __or__(self, other: "Thresholds") -> "Thresholds":
        return Thresholds(**self._known, **other._known)

    def scale(self, name: str, factor: float) -> "Thresholds":
        """The same with one of them larger or smaller."""
        one = self._known[name]
        return Thresholds(**self._known | {name: replace(one, value=factor * one.value)})


NO_THRESHOLDS: Final = Thresholds()
