"""A kernel file in which names say what the numbers are, read again and again: its numbers in the
order of the names that are wanted, or by how much they rose.
"""

from collections.abc import Callable, Iterable
from operator import sub
from pathlib import Path
from typing import Protocol

from necroscope.sources.kept_file import KeptFile
from necroscope.sources.kept_numbers import KeptNumbers

Values = list[int | None]


class NamesInText(Protocol):
    """Where the wanted numbers stand in a text: the words at `value_places`."""

    value_places: list[int]

    def parse(self, data: bytes) -> Values: ...

    def in_order(self, numbers: Iterable[int]) -> Values: ...


def as_they_are(values: Values) -> Values:
    return values


class NamedFile:
    """`columns` makes the columns of a table out of the numbers. `longest_bytes` of a line, 0 if
    the kernel writes the file as a single record.
    """

    def __init__(
        self,
        path: Path,
        names: NamesInText,
        columns: Callable[[Values], Values] = as_they_are,
        longest_bytes: int = 0,
        base: int = 10,
    ) -> None:
        self.file = KeptFile(path)
        self._names = names
        self._columns = columns
        self._longest_bytes = longest_bytes
        self._numbers = KeptNumbers(self.file, base=base, longest_record_bytes=longest_bytes)
        # Of counters, at the last read; None: they are in `_numbers`.
        self._before: Values | None = []

    def read(self) -> Values:
        """The columns now."""
        if not self._numbers.take():
            return self._parse_file()
        return self._columns(self._names.in_order(self._numbers.values))

    def rises(self) -> Values | None:
        """By how much they rose since the last read, less than 0 where a counter fell; None if
        there is nothing to compare with.
        """
        if self._numbers.take():
            self._before = None
            return self._columns(self._names.in_order(self._numbers.rises))
        before = self.values()
        self._before = self._parse_file()
        return differences(self._before, before) if before else None

    def values(self) -> Values:
        """The columns at the last read."""
        if self._before is not None:
            return self._before
        return self._columns(self._names.in_order(self._numbers.values))

    def close(self) -> None:
        self.file.close()

    def _parse_file(self) -> Values:
        return self.file.parse(
            self._parse,
            record=not self._longest_bytes,
            longest_record_bytes=self._longest_bytes,
        )

    def _parse(self, data: bytes) -> Values:
        values = self._columns(self._names.parse(data))
        self._numbers.learn(data, self._names.value_places)
        return values


def differences(now: Values, before: Values) -> Values:
    if None not in now and None not in before:
        return list(map(sub, now, before))
    return [
        None if new is None or old is None else new - old
        for new, old in zip(now, before, strict=True)
    ]
