"""Journals that wait to become Parquet: one child at a time seals the oldest. One that cannot be
sealed stays a journal for good.

A journal answers the same questions, but for the table `core_minutes`, which only a seal derives:
that is a gap.
"""

import os
import shutil
import sys
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.child import Child
from necroscope.model.reading import Gap
from necroscope.segment.lock import lock_directory
from necroscope.segment.recording import LIVE, SEALING, segment_bytes, segment_start_ns

# A node that is an hour behind will not catch up, and a recorder that is to end waits until all of
# them are sealed.
MOST_WAITING: Final = 12
_SEAL_SECONDS: Final = 600.0
_LOOK_SECONDS: Final = 1.0


class StaysJournal(NamedTuple):
    """A segment that will not be sealed, and why."""

    path: Path
    cause: str

    def gap(self, end_ns: int | None) -> Gap:
        """Of the table that only a seal derives."""
        start_ns = segment_start_ns(self.path.name)
        cause = f"the segment could not be sealed: {self.cause}"
        return Gap("core_minutes", start_ns, start_ns if end_ns is None else end_ns, cause)


class _Sealing(NamedTuple):
    child: Child
    path: Path


class SealQueue:
    """`tend` is to be called now and then; it starts the next child and returns what was given up
    since.

    No child is started before `release`: the first rows of a recorder say what was missed since the
    one before it was cut off, and the next one reads from that one's journal where it ended.
    Should this one be cut off before those rows are durable, the journal has to be there still.
    """

    def __init__(self, unsealed: Iterable[Path]) -> None:
        self._waiting = deque(unsealed)
        self._sealing: _Sealing | None = None
        self._is_released = False

    @property
    def sealing(self) -> Path | None:
        """The journal that a child is at: it must stay until the child is gone."""
        return self._sealing.path if self._sealing else None

    @property
    def is_busy(self) -> bool:
        """Whether a child is at work or may be started."""
        return self._sealing is not None or (self._is_released and bool(self._waiting))

    def unfinished_bytes(self) -> int:
        """What the child wrote so far."""
        return segment_bytes(_sealing_path(self._sealing.path)) if self._sealing else 0

    def add(self, journal: Path) -> None:
        self._waiting.append(journal)

    def discard(self, journal: Path) -> None:
        """It was dropped before its turn came."""
        if journal in self._waiting:
            self._waiting.remove(journal)

    def release(self) -> None:
        """Rows of this recorder are durable."""
        self._is_released = True

    def tend(self) -> list[StaysJournal]:
        given_up = self._take_result()
        while len(self._waiting) > MOST_WAITING:
            given_up.append(
                StaysJournal(
                    self._waiting.popleft(), f"more than {MOST_WAITING} segments wait to be sealed"
                )
            )
        if self._is_released and self._sealing is None and self._waiting:
            given_up += self._start(self._waiting.popleft())
        return given_up

    def finish(self) -> list[StaysJournal]:
        """Seal all that wait."""
        self.release()
        given_up = self.tend()
        while self._sealing is not None:
            self._sealing.child.wait(_LOOK_SECONDS)
            given_up += self.tend()
        return given_up

    def _start(self, journal: Path) -> list[StaysJournal]:
        command = [sys.executable, "-P", "-m", "necroscope.segment.seal_child", str(journal)]
        try:
            child = Child(command, deadline_s=_SEAL_SECONDS)
        except OSError as error:  # the node has no room for another process
            return [StaysJournal(journal, error.strerror or str(error))]
        self._sealing = _Sealing(child, journal)
        return []

    def _take_result(self) -> list[StaysJournal]:
        if self._sealing is None:
            return []
        child, journal = self._sealing.child, self._sealing.path
        if child.is_late:
            child.end(0.0)
            cause = f"did not end in {_SEAL_SECONDS:.0f} s"
        elif child.status is None:
            return []
        else:
            cause = _cause(child.status)
        self._sealing = None
        if not cause:
            return []
        _remove_unfinished(journal)
        return [StaysJournal(journal, f"the process that seals {cause}")]


def _cause(status: int) -> str:
    if status == 0:
        return ""
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"


def _sealing_path(journal: Path) -> Path:
    return journal.with_name(journal.name.removesuffix(LIVE) + SEALING)


def _remove_unfinished(journal: Path) -> None:
    """A child that was killed leaves what it wrote. Under lock: a child that outlived an earlier
    recorder may be at it still.
    """
    try:
        lock = lock_directory(journal)
    except OSError:
        return
    if lock is not None:
        shutil.rmtree(_sealing_path(journal), ignore_errors=True)
        os.close(lock)
