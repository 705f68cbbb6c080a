"""The native core for captures of other tools: rounds, windows, several events, and stacks that
come with their names (core/captures.c).
"""

from array import array
from ctypes import Array, c_int64, c_uint64
from pathlib import Path
from typing import Final

from necroscope.native import LIBRARY
from necroscope.profile.core import Core
from necroscope.profile.library import load

MARK_SETS: Final = 4096


class CaptureCore(Core):
    def set_window(self, from_ns: int, to_ns: int) -> None:
        """Of samples outside of it no rows are made."""
        self._library.profile_window(self._handle, from_ns, to_ns)

    def start_capture(self, *, has_time: bool, has_trailer: bool) -> None:
        """Another capture: its events, tasks and addresses are others. Functions and stacks keep
        their numbers.
        """
        self._library.profile_start_capture(self._handle, has_time, has_trailer)
        self._look()

    def scan(self, content: bytes, span: "Array[c_uint64]") -> int:
        """Widen `span` by the times of samples; how many bytes of whole records that were. Nothing
        is queued.
        """
        return int(self._library.profile_scan(self._handle, content, len(content), span))

    @property
    def earliest_ns(self) -> int:
        """Of the records that wait; past all times if there is none."""
        return int(self._library.profile_earliest(self._handle))

    def safe_until_ns(self, *, is_late: bool) -> int:
        """No record still to come lies before this; `is_late`: the ends of rounds came before all
        of their records.
        """
        return int(self._library.profile_safe_until(self._handle, is_late))

    def count_marks(
        self,
        marks: "array[int]",
        stacks: bytes,
        weights: bytes | None,
        sets: "array[int]",
        counts: "array[int]",
    ) -> None:
        """Count samples by the marks (bits of 64) of the frames of their stacks, into tables of
        MARK_SETS in which 0 is free.
        """
        tables = (sets.buffer_info()[0], counts.buffer_info()[0])
        self._library.profile_count_marks(
            self._handle, marks.tobytes(), len(marks), stacks, weights, len(stacks) // 4, *tables
        )

    def limit_turn(self, records: int) -> None:
        """`replay` ends after this many, whatever still waits."""
        self._library.profile_limit_turn(self._handle, records)

    def leave_out(self, event: int) -> None:
        """Samples of this event are counted from now on, and nothing else."""
        self._library.profile_leave_out(self._handle, event)

    def event_counts(self, event: int) -> tuple[int, int]:
        """Samples of an event that came, and those that were left out."""
        counts = (c_uint64 * 2)()
        self._library.profile_event_counts(self._handle, event, counts)
        return counts[0], counts[1]

    def turn_span(self) -> tuple[int, int] | None:
        """First and last time of the turn's samples, those of idle cores among them."""
        span = (c_int64 * 2)()
        return (span[0], span[1]) if self._library.profile_turn_span(self._handle, span) else None

    def intern_stacks(self, frames: "array[int]", lengths: "array[int]") -> "array[int]":
        """Numbers of stacks whose frames are the caller's numbers (32 bits each), one stack after
        the other, outermost first.

        A stack without frames is -1.
        """
        stacks = array("i", bytes(4 * len(lengths)))
        address, count = stacks.buffer_info()
        self._library.profile_intern_stacks(
            self._handle, frames.tobytes(), lengths.tobytes(), count, address
        )
        self._look()
        return stacks


def skip_records(content: bytes, library: Path = LIBRARY) -> int:
    """How many bytes of records come first that are not perf's own."""
    return int(load(library).profile_skip(content, len(content)))
