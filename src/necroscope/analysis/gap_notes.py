"""Gaps in words: a line a cause, with the time they cover together counted once; what is damaged
comes first.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from necroscope.model.reading import Gap
from necroscope.model.span import Span, merge
from necroscope.model.units import format_duration

# How readers of segments and journals begin the cause of a gap that they found themselves.
_DAMAGE: Final = ("segment ", "journal damaged", "frame ")


def is_damage(gap: Gap) -> bool:
    """Bytes were there and could not be trusted; all other gaps were noted while recording."""
    return gap.cause.startswith(_DAMAGE) or "checksum" in gap.cause


def gap_notes(gaps: Iterable[Gap]) -> list[str]:
    """`damaged, cannot be read: ...`, then `the rings were full: 2 gaps in samples, 3.1 s
    together`.
    """
    found = list(gaps)
    by_cause: dict[str, list[Gap]] = {}
    for gap in found:
        if gap.to_ns > gap.from_ns or is_damage(gap):
            by_cause.setdefault(gap.cause, []).append(gap)
    ordered = sorted(
        by_cause.items(), key=lambda item: (not is_damage(item[1][0]), -_covered_ns(item[1]))
    )
    return [_describe(cause, own) for cause, own in ordered]


def _describe(cause: str, gaps: Sequence[Gap]) -> str:
    parts = merge(Span(gap.from_ns, gap.to_ns) for gap in gaps)
    tables = ", ".join(sorted({"all tables" if gap.table == "*" else gap.table for gap in gaps}))
    count = "1 gap" if len(parts) == 1 else f"{len(parts)} gaps"
    together = " together" if len(parts) > 1 else ""
    damaged = "damaged, cannot be read: " if is_damage(gaps[0]) else ""
    return f"{damaged}{cause}: {count} in {tables}, {format_duration(_covered_ns(gaps))}{together}"


def _covered_ns(gaps: Iterable[Gap]) -> int:
    return sum(
        to_ns - from_ns for from_ns, to_ns in merge(Span(gap.from_ns, gap.to_ns) for gap in gaps)
    )
