"""Which segments to drop: a decision over age, bytes, pins and free space, without I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from necroscope.segment.recording import Pin


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A sealed segment on disk; the live one is not offered, because it cannot be dropped."""

    name: str
    from_ns: int
    to_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Limits:
    max_bytes: int
    max_age_ns: int
    pin_bytes: int


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


def pinned_segments(segments: Sequence[StoredSegment], pins: Sequence[Pin], pin_bytes: int) -> set[str]:
    """Segments that a pin touches, newest first, as far as the pins' own budget goes."""
    kept: set[str] = set()
    left_bytes = pin_bytes
    for segment in sorted(segments, key=lambda segment: -segment.from_ns):
        if any(segment.from_ns <= pin.to_ns and pin.from_ns <= segment.to_ns for pin in pins):
            if segment.size_bytes > left_bytes:
                break
            left_bytes -= segment.size_bytes
            kept.add(segment.name)
    return kept


def segments_to_drop(
    segments: Sequence[StoredSegment], pins: Sequence[Pin], limits: Limits, live_bytes: int, now_ns: int, missing_bytes: int
) -> list[str]:
    """Oldest first: what is too old, what the ring has no room for, and what frees `missing_bytes` of disk.

    Pinned segments stay, but for the free-space floor, which comes before everything.
    """
    pinned = pinned_segments(segments, pins, limits.pin_bytes)
    ordered = sorted(segments, key=lambda segment: segment.from_ns)
    ring = [segment for segment in ordered if segment.name not in pinned]
    ring_bytes = live_bytes + sum(segment.size_bytes for segment in ring)
    drops: list[str] = []
    for segment in ring:
        too_old = now_ns - segment.to_ns > limits.max_age_ns
        if not too_old and ring_bytes <= limits.max_bytes and missing_bytes <= 0:
            break
        drops.append(segment.name)
        ring_bytes -= segment.size_bytes
        missing_bytes -= segment.size_bytes
    for segment in ordered:
        if missing_bytes <= 0:
            break
        if segment.name in pinned:
            drops.append(segment.name)
            missing_bytes -= segment.size_bytes
    return drops
