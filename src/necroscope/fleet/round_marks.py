"""Which files of the inbox a collector is about to take: what is left of a round that its collector
did not survive.

    compacting/<collector>      the files of its round, when that began, and whether it was their
    second try

Files of such a round are tried once more, each alone. One that ends a collector then as well would
end all that come after it.
"""

import contextlib
import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import LakeError, NotInLake
from necroscope.model.units import NS_PER_S

MARKS: Final = "compacting"
# A round takes seconds: after a minute its collector must be dead.
_UNFINISHED_NS: Final = 60 * NS_PER_S


@dataclass(frozen=True, slots=True)
class UnfinishedFiles:
    """Files of rounds that have not ended; `fatal` are those of them that were alone, on their
    second try.
    """

    begun: frozenset[str] = frozenset()
    fatal: frozenset[str] = frozenset()


class RoundMarks:
    def __init__(self, lake: Lake, collector: str, clock_ns: Callable[[], int]) -> None:
        self._lake = lake
        self._path = f"{MARKS}/{collector}"
        self._clock_ns = clock_ns

    @contextmanager
    def round(self, paths: Collection[str], *, is_second_try: bool) -> Iterator[None]:
        content = {
            "begun_ns": self._clock_ns(),
            "is_second_try": is_second_try,
            "paths": list(paths),
        }
        self._lake.put(self._path, json.dumps(content).encode())
        try:
            yield
        except LakeError:
            # The lake's trouble is not the fault of a file.
            with contextlib.suppress(LakeError):
                self._lake.delete(self._path)
            raise
        self._lake.delete(self._path)

    def unfinished(self, inbox: Collection[str]) -> UnfinishedFiles:
        """Of the files that are in the inbox. Marks of files that are gone go too."""
        begun: set[str] = set()
        fatal: set[str] = set()
        for mark in self._lake.list(MARKS):
            # A mark that cannot be read stands for nothing: its files have their first try again.
            with contextlib.suppress(NotInLake, ValueError, KeyError, TypeError):
                content = json.loads(self._lake.read(mark))
                there = set(content["paths"]).intersection(inbox)
                begun |= there
                if content["is_second_try"] and (
                    mark == self._path or self._clock_ns() - content["begun_ns"] > _UNFINISHED_NS
                ):
                    fatal |= there
                if not there:
                    self._lake.delete(mark)
        return UnfinishedFiles(frozenset(begun), frozenset(fatal))
