"""Which segments to drop: a decision over age, bytes, pins and free space, without I/O."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from necroscope.model.units import NS_PER_S
from necroscope.segment.recording import Pin

# A segment may begin a moment after the last rows that were written.
_AHEAD_NS: Final = 60 * NS_PER_S
# Of age, at a time: a recorder that starts with a wrong clock is set right before much is gone.
MOST_AGED: Final = 2
# Pinned segments that filling the disk to its floor does not erase: only a disk that is full does.
RESERVE_BYTES: Final = 256 << 20


class StoredSegment(NamedTuple):
    """A segment on disk, sealed or not; the one being recorded is not. Each ends where the next
    begins, and the last ends now.
    """

    name: str
    from_ns: int
    to_ns: int
    size_bytes: int


class RetentionLimits(NamedTuple):
    max_bytes: int
    max_age_ns: int
    pin_bytes: int
    reserve_bytes: int = RESERVE_BYTES


def merge_pins(pins: Sequence[Pin]) -> list[Pin]:
    """Overlapping windows become one, which keeps the first reason."""
    merged: list[Pin] = []
    for pin in sorted(pins, key=lambda pin: pin.from_ns):
        if merged and pin.from_ns <= merged[-1].to_ns:
            last = merged[-1]
            merged[-1] = Pin(last.from_ns, max(last.to_ns, pin.to_ns), last.reason)
        else:
            merged.append(pin)
    return merged


def oldest_first(segments: Sequence[StoredSegment]) -> list[StoredSegment]:
    """By their start, but those that begin in the future before all: the clock was ahead, and was
    set right since.

    By start alone they would outlive all that is recorded now, until the clock has come to where it
    was.
    """
    ordered = sorted(segments, key=lambda segment: segment.from_ns)
    if not ordered:
        return []
    place = bisect_right(
        ordered, ordered[-1].to_ns + _AHEAD_NS, key=lambda segment: segment.from_ns
    )
    return ordered[place:] + ordered[:place]


def pinned_segments(
    segments: Sequence[StoredSegment], pins: Sequence[Pin], pin_bytes: int
) -> set[str]:
    """Segments that a pin touches, newest first, as far as the pins' own budget goes."""
    windows = merge_pins(pins)
    ends_ns = [window.to_ns for window in windows]
    kept: set[str] = set()
    left_bytes = pin_bytes
    for segment in reversed(oldest_first(segments)):
        place = bisect_left(ends_ns, segment.from_ns)
        if place < len(windows) and windows[place].from_ns <= segment.to_ns:
            if segment.size_bytes > left_bytes:
                break
            left_bytes -= segment.size_bytes
            kept.add(segment.name)
    return kept


class Stock:
    """All stored segments, told apart once: what is in bounds is then known from sums, however many
    there are.
    """

    def __init__(
        self,
        segments: Sequence[StoredSegment],
        pins: Sequence[Pin],
        limits: RetentionLimits,
        busy: str | None = None,
    ) -> None:
        """`busy` is the segment that is being sealed: it counts, and cannot be dropped."""
        pinned = pinned_segments(segments, pins, limits.pin_bytes)
        ordered = oldest_first(segments)
        self.segments = ordered
        self.size_bytes = sum(segment.size_bytes for segment in ordered)
        self._limits = limits
        self._pinned = [
            segment for segment in ordered if segment.name in pinned and segment.name != busy
        ]
        self._ring = [
            segment for segment in ordered if segment.name not in pinned and segment.name != busy
        ]
        self._ring_bytes = sum(
            segment.size_bytes for segment in ordered if segment.name not in pinned
        )

    def to_drop(
        self, live_bytes: int, now_ns: int, missing_bytes: int, *, is_full: bool = False
    ) -> list[str]:
        """Oldest first: some of what is too old, what the ring has no room for, and what frees
        `missing_bytes` of disk.

        Pinned segments stay, but for the free-space floor; a reserve of the newest of them stays
        unless the disk `is_full`.
        """
        limits, ring_bytes = self._limits, live_bytes + self._ring_bytes
        drops: list[str] = []
        aged = 0
        for segment in self._ring:
            too_old = now_ns - segment.to_ns > limits.max_age_ns and aged < MOST_AGED
            aged += too_old
            if not too_old and ring_bytes <= limits.max_bytes and missing_bytes <= 0:
                if segment.from_ns > now_ns:
                    # of a clock that was ahead: it comes first, and those behind it may still be
                    # too old
                    continue
                break
            drops.append(segment.name)
            ring_bytes -= segment.size_bytes
            missing_bytes -= segment.size_bytes
        left_bytes = sum(segment.size_bytes for segment in self._pinned)
        for segment in self._pinned:
            left_bytes -= segment.size_bytes
            if missing_bytes <= 0 or (left_bytes < limits.reserve_bytes and not is_full):
                break
            drops.append(segment.name)
            missing_bytes -= segment.size_bytes
        return drops
