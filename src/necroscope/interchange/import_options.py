"""What an import is given in addition to its files."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from necroscope.interchange.symbol_search import SymbolSearch

IMPORTED_BOOT: Final = "imported"
"""Stands for the boot id in an imported recording."""

Progress = Callable[[str, int, int], None]
"""File under way, bytes done of all files, bytes of all files."""


def _say_nothing(_name: str, _done_bytes: int, _all_bytes: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Options:
    """`year` and `utc_offset_s` are for times that do not say theirs; `event` is which of a
    capture's events is imported. `in_journals` leaves the segments unsealed: for a window that is
    asked for once.
    """

    search: SymbolSearch = field(default_factory=SymbolSearch)
    from_ns: int | None = None
    to_ns: int | None = None
    year: int | None = None
    utc_offset_s: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    event: str | None = None
    made_by: str = "necroscope import"
    in_journals: bool = False
    progress: Progress = _say_nothing

    @property
    def has_window(self) -> bool:
        return self.from_ns is not None or self.to_ns is not None
