"""Numbers, times and hostile names as the few characters a view has room for. What is missing is a
dash, never 0.
"""

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from necroscope.model.names import NAME_LIMIT, clean
from necroscope.model.units import NS_PER_MS, NS_PER_S, NS_PER_US

MISSING: Final = "–"
CUT: Final = "…"
_LEVELS: Final = "_▁▂▃▄▅▆▇█"
# Marks, joiners and direction signs take no cell of their own: they would shift, hide or reorder
# what stands next to them.
_CELL_LESS: Final = frozenset({"Mn", "Me", "Cf", "Cc", "Cs", "Co", "Cn", "Zl", "Zp"})

# Bars, sparklines and arrows lie outside: most texts need no look at each of their characters.
_MAYBE_WIDE: Final = re.compile(
    "[\u1100-\u115f\u2300-\u23ff\u25fd-\u27bf\u2b00-\u2bff\u2e80-\U0010ffff]"
)


# The same names come every second.
@lru_cache(maxsize=4096)
def literal(text: str, limit: int = NAME_LIMIT) -> str:
    """A name from the machine as it may stand on a terminal: every character that has no cell of
    its own is escaped.
    """
    text = clean(text, limit)
    if text.isascii():
        return text
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in _CELL_LESS else c for c in text)


def literal_line(text: str) -> str:
    """A line from many parts may be longer than a name, but not without end."""
    return "".join(
        literal(text[start : start + 100]) for start in range(0, min(len(text), 1000), 100)
    )


def percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.0f}%"


def count(number: int | None) -> str:
    return MISSING if number is None else f"{number:,}"


def brief_duration(duration_ns: int | None) -> str:
    """At most seven characters: `84 µs`, `1.2 ms`, `340 ms`, `1.24 s`, `12 min`."""
    if duration_ns is None:
        return MISSING
    if duration_ns < 999_500:
        return f"{duration_ns / NS_PER_US:.0f} µs"
    if duration_ns < 9_950 * NS_PER_US:
        return f"{duration_ns / NS_PER_MS:.1f} ms"
    if duration_ns < 999_500 * NS_PER_US:
        return f"{duration_ns / NS_PER_MS:.0f} ms"
    if duration_ns < 99_500 * NS_PER_MS:
        return f"{duration_ns / NS_PER_S:.3g} s"
    return f"{duration_ns / (60 * NS_PER_S):.0f} min"


def time_of_day(time_ns: int) -> str:
    """`22:31:07`, UTC."""
    return f"{datetime.fromtimestamp(time_ns // NS_PER_S, UTC):%H:%M:%S}"


def sparkline(shares: Sequence[float | None]) -> str:
    """One character a value from 0 to 1; a value that is missing is a dash, and 0 is lower than the
    lowest block.
    """
    top = len(_LEVELS) - 1
    return "".join(
        MISSING
        if share is None
        else _LEVELS[0]
        if share < 0.005
        else _LEVELS[max(1, min(top, round(share * top)))]
        for share in shares
    )


def level(share: float) -> str:
    """The character a sparkline has for this share."""
    return sparkline((share,))


def cells(text: str) -> int:
    """Terminal cells that a `literal` text takes: East Asian wide characters take two."""
    if text.isascii() or not _MAYBE_WIDE.search(text):
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def fit(text: str, width: int) -> str:
    """Exactly `width` cells, cut at the end with a sign that it was cut."""
    if cells(text) > width:
        text = _first_cells(text, width - 1) + CUT if width > 0 else ""
    return text + " " * (width - cells(text))


def fit_right(text: str, width: int) -> str:
    """Exactly `width` cells, the text at the right end."""
    missing = width - cells(text)
    return " " * missing + text if missing >= 0 else fit(text, width)


def fit_tail(text: str, width: int) -> str:
    """Exactly `width` cells, cut at the start: the end of a path is what tells two of them
    apart.
    """
    if cells(text) > width:
        text = CUT + _first_cells(text[::-1], width - 1)[::-1] if width > 0 else ""
    return text + " " * (width - cells(text))


def _first_cells(text: str, width: int) -> str:
    """As many characters from the start as fit."""
    if text.isascii():
        return text[:width]
    kept = text[:width]
    while cells(kept) > width:
        kept = kept[:-1]
    return kept
