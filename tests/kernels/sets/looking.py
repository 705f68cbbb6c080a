"""What the sets look at: a recording, row by row, and a check that says what it wanted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

ALL = (0, 1 << 62)
# An emulated machine may be too slow, all the more where the host is busy; that is reported, and is no
# fault of the kernel's.
TOO_SLOW = (
    *(
        "did not answer in time",
        "the recorder was not run for",
        "were not read twice",
        "were counted within",
    ),
    *("the lookup process hung", "more waits than are kept"),
)
# What a kernel does not have, or has not loaded, is reported with these words, and stays null.
NOT_THERE = ("this kernel's ", "this node does not count ")


def say(text: str) -> None:
    """From inside, to the guest's console, which is a file that can be watched."""
    with Path("/dev/console").open("w") as console:
        console.write(f"guest: {text}\n")


def check(is_true: bool, what: str) -> None:
    if not is_true:
        raise AssertionError(what)


class GuestRecording:
    """A recording, opened where the analysis is: on this side. In the guest nothing of this is
    imported before it is used.
    """

    def __init__(self, directory: Path) -> None:
        from necroscope.store.query import Store

        self._store = Store.open(directory)
        self.tables = set(self._store.info().tables)
        gaps = [(row["table"], row["cause"], row["cpu"]) for row in self.rows("gaps")]
        self.gaps = [
            gap for gap in gaps if not any(words in gap[1] for words in (*TOO_SLOW, *NOT_THERE))
        ]
        self.late_tables = {gap[0] for gap in gaps if gap not in self.gaps}

    @property
    def gap_tables(self) -> set[str]:
        return {table for table, _, _ in self.gaps}

    def causes(self, table: str) -> list[str]:
        return [cause for name, cause, _ in self.gaps if name == table]

    def rows(self, table: str, cpus: Sequence[int] | None = None) -> list[dict[str, Any]]:
        return list(self._store.rows(table, *ALL, cpus=cpus).to_pylist())

    def frames(self) -> list[dict[str, Any]]:
        return list(self._store.samples(*ALL).frames.to_pylist())
