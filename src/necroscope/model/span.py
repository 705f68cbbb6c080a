"""A stretch of time, by one convention: from `from_ns` to before `to_ns`."""

from collections.abc import Iterable
from typing import NamedTuple

from necroscope.errors import UsageError
from necroscope.model.units import NS_PER_S, format_duration, format_moment, parse_moment_ns

# First and last time, both of them in it: how segments store what they hold. A Span is half open.
Extent = tuple[int, int]


class Span(NamedTuple):
    """Half open, so that spans that follow each other share no moment. A row at `to_ns` is in the
    next one.
    """

    from_ns: int
    to_ns: int

    @classmethod
    def parse(cls, since: str, until: str | None, now_ns: int) -> "Span":
        """`-7d` and ISO 8601; until now if nothing else is said."""
        from_ns = parse_moment_ns(since, now_ns)
        to_ns = now_ns if until is None else parse_moment_ns(until, now_ns)
        if from_ns >= to_ns:
            raise UsageError(
                f"{since!r} is not before {until or 'now'!r}",
                "give the older moment as --since, for example -7d or 2026-04-15",
            )
        # The first and last moments that a date can be written for bound what is asked.
        return cls(max(from_ns, 0), to_ns)

    @property
    def length_ns(self) -> int:
        return self.to_ns - self.from_ns

    @property
    def length(self) -> str:
        return format_duration(self.length_ns)

    def as_json(self) -> dict[str, str]:
        return {"from": format_moment(self.from_ns), "to": format_moment(self.to_ns)}

    def contains(self, time_ns: int) -> bool:
        return self.from_ns <= time_ns < self.to_ns

    def shared_ns(self, other: "Span") -> int:
        """How long they overlap; below zero if they do not, by what lies between them."""
        return min(self.to_ns, other.to_ns) - max(self.from_ns, other.from_ns)

    def overlaps(self, other: "Span") -> bool:
        return self.from_ns < other.to_ns and other.from_ns < self.to_ns


class Lasting:
    """What begins and ends, seen as the stretch that it takes."""

    __slots__ = ()
    from_ns: int
    to_ns: int

    @property
    def span(self) -> Span:
        return Span(self.from_ns, self.to_ns)

    @property
    def seconds(self) -> float:
        return (self.to_ns - self.from_ns) / NS_PER_S


def merge(spans: Iterable[Span], gap_ns: int = 0) -> list[Span]:
    """In order of time; those that touch, or lie at most `gap_ns` apart, are one."""
    merged: list[Span] = []
    for from_ns, to_ns in sorted(spans):
        if merged and from_ns - merged[-1].to_ns <= gap_ns:
            merged[-1] = Span(merged[-1].from_ns, max(merged[-1].to_ns, to_ns))
        else:
            merged.append(Span(from_ns, to_ns))
    return merged
