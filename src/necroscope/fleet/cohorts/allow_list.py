"""Differences that are meant to be: lines of `kind:name` or `kind:name=value`, with `*` and `?`, so
that what is left can be a gate.

    # zones have their own mirror
    config_file:/etc/apt/*
    label:zone
    package:kernel*=6.8.*        only while both sides have such a value
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from necroscope.errors import UsageError

_MOST_LINES: Final = 10_000


@dataclass(frozen=True, slots=True)
class AllowedDifference:
    kind: str
    name: str
    value: str | None

    def allows(self, kind: str, name: str, values: Iterable[str | None]) -> bool:
        if not (fnmatchcase(kind, self.kind) and fnmatchcase(name, self.name)):
            return False
        pattern = self.value
        return pattern is None or all(
            value is not None and fnmatchcase(value, pattern) for value in values
        )


@dataclass(frozen=True, slots=True)
class AllowList:
    lines: tuple[AllowedDifference, ...] = ()

    @classmethod
    def parse(cls, text: str, source: str) -> "AllowList":
        """UsageError with the line that says nothing: a gate must not open by a slip of the pen."""
        lines = text.splitlines()
        if len(lines) > _MOST_LINES:
            raise UsageError(f"{source} has {len(lines):,} lines", f"at most {_MOST_LINES:,}")
        found = []
        for number, line in enumerate(lines, 1):
            words = line.split(" #")[0].strip()
            if words and not words.startswith("#"):
                found.append(_line(words, f"{source}, line {number}"))
        return cls(tuple(found))

    def allows(self, kind: str, name: str, values: Iterable[str | None]) -> bool:
        listed = list(values)
        return any(each.allows(kind, name, listed) for each in self.lines)


def _line(words: str, place: str) -> AllowedDifference:
    fact, equals, value = words.partition("=")
    kind, colon, name = fact.partition(":")
    if not colon or not kind.strip() or not name.strip() or (equals and not value.strip()):
        raise UsageError(
            f"{place}: {words!r} is not a valid difference",
            "write kind:name or kind:name=value, for example package:linux-image-*",
        )
    return AllowedDifference(kind.strip(), name.strip(), value.strip() or None)
