"""The time a question is about."""

from typing import NamedTuple

from necroscope.errors import UsageError
from necroscope.model.units import format_duration, format_moment, parse_moment_ns


class Span(NamedTuple):
    """From `from_ns` to before `to_ns`."""

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
    def length(self) -> str:
        return format_duration(self.to_ns - self.from_ns)

    def as_json(self) -> dict[str, str]:
        return {"from": format_moment(self.from_ns), "to": format_moment(self.to_ns)}
