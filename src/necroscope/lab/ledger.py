"""The ledger of a run: each act that changes the machine is written here, and is on disk, before it
is done.

A ledger is a directory of its own below `state_directory()`, which does not outlive a reboot, as
the acts themselves do not: `acts.jsonl`, a line an act, and the lock that its run holds as long as
it lives. An act is data, a kind and its arguments, which `undo.py` knows how to take back; so what
a killed run has left is undone by the next run.
"""

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from necroscope.lab.scenario import LabError

ENVIRONMENT: Final = "NECROSCOPE_LAB_STATE"
_ACTS: Final = "acts.jsonl"


@dataclass(frozen=True, slots=True)
class Act:
    kind: str
    data: dict[str, Any]


def state_directory() -> Path:
    """Where the ledgers are: the same place for every run on this machine, unless a test says
    otherwise.
    """
    return Path(os.environ.get(ENVIRONMENT, "/run/necroscope-lab"))


class ActLedger:
    """Held by one process at a time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._file = (directory / _ACTS).open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise LabError(
                f"the run of {directory.name} is still under way", "end it first"
            ) from None

    @classmethod
    def make(cls, state: Path) -> Self:
        directory = state / secrets.token_hex(8)
        directory.mkdir(mode=0o700, parents=True)
        return cls(directory)

    @classmethod
    def abandoned(cls, state: Path) -> Iterator[Self]:
        """The ledgers of runs that live no more, each locked while it is looked at."""
        for directory in sorted(state.glob("*/")):
            try:
                ledger = cls(directory)
            except LabError:
                continue
            with ledger:
                yield ledger

    @property
    def name(self) -> str:
        """Also the mark in the environment of every process of the run."""
        return self.directory.name

    def write(self, kind: str, data: dict[str, Any]) -> None:
        self._file.write(json.dumps({"kind": kind, "data": data}) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def acts(self) -> list[Act]:
        """In the order they were written; a line that was cut short was not followed by its act."""
        self._file.seek(0)
        found = []
        for line in self._file:
            try:
                content = json.loads(line)
                found.append(Act(content["kind"], content["data"]))
            except (ValueError, KeyError):
                continue
        return found

    def discard(self) -> None:
        """All is undone."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
