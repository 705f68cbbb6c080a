"""Which segments go: by age, by bytes, by free space; pins stay as long as they may. Segments are
letters, a minute each.
"""

from pathlib import Path

import pytest

from necroscope.model.units import NS_PER_S
from necroscope.recorder.disk import Disk
from necroscope.recorder.retention import (
    Pin,
    RetentionLimits,
    Stock,
    StoredSegment,
    merge_pins,
    pinned_segments,
)
from necroscope.segment.recording import Identity, make_recording, segment_name, segment_paths

MINUTE_NS = 60 * NS_PER_S
ROOMY = RetentionLimits(
    max_bytes=10**12, max_age_ns=10**6 * MINUTE_NS, pin_bytes=10**12, reserve_bytes=0
)


def stored(names: str, size_bytes: int = 10) -> list[StoredSegment]:
    return [
        StoredSegment(name, place * MINUTE_NS, (place + 1) * MINUTE_NS - 1, size_bytes)
        for place, name in enumerate(names)
    ]


def pin(first: int, last: int, reason: str = "incident") -> Pin:
    return Pin(first * MINUTE_NS + 1, last * MINUTE_NS + 1, reason)


def drops(
    segments: list[StoredSegment],
    *pins: Pin,
    limits: RetentionLimits = ROOMY,
    live: int = 0,
    minute: int = 10,
    missing: int = 0,
) -> str:
    return "".join(Stock(segments, pins, limits).to_drop(live, minute * MINUTE_NS, missing))


def ring_of(max_bytes: int, pin_bytes: int = 10**12) -> RetentionLimits:
    return ROOMY._replace(max_bytes=max_bytes, pin_bytes=pin_bytes)


def test_within_all_limits_nothing_goes() -> None:
    assert drops(stored("abcde")) == ""
    assert drops([]) == ""


def test_the_oldest_go_until_the_ring_fits() -> None:
    assert drops(stored("abcde"), limits=ring_of(50)) == ""
    assert drops(stored("abcde"), limits=ring_of(49)) == "a"
    assert drops(stored("abcde"), limits=ring_of(25)) == "abc"


def test_segments_need_not_come_in_order() -> None:
    assert drops(stored("abcde")[::-1], limits=ring_of(25)) == "abc"


def test_the_live_segment_counts_in_the_ring() -> None:
    assert drops(stored("abcde"), limits=ring_of(50), live=15) == "ab"
    assert drops(stored("abcde"), limits=ring_of(50), live=1000) == "abcde"


def test_the_segment_that_is_being_sealed_counts_in_the_ring_and_stays() -> None:
    assert (
        "".join(Stock(stored("abcde"), [], ring_of(25), busy="a").to_drop(0, 10 * MINUTE_NS, 0))
        == "bcd"
    )
    assert (
        "".join(
            Stock(stored("abcde"), [pin(0, 4)], ROOMY, busy="a").to_drop(0, 10 * MINUTE_NS, 1000)
        )
        == "bcde"
    )


def after_a_clock_ahead() -> list[StoredSegment]:
    """As a recorder lists them in minute 10: `xyz` are of a clock that was a thousand minutes
    ahead, and was set right since.
    """
    starts = [*range(4, 10), *range(1004, 1007)]
    ends = [*starts[1:], 10]
    return [
        StoredSegment(name, start * MINUTE_NS, end * MINUTE_NS, 10)
        for name, start, end in zip("abcdefxyz", starts, ends, strict=True)
    ]


def test_segments_of_a_clock_that_was_ahead_go_before_those_of_now() -> None:
    segments = after_a_clock_ahead()
    assert drops(segments, limits=ring_of(90)) == ""
    assert drops(segments, limits=ring_of(75)) == "xy"
    assert drops(segments, limits=ring_of(50)) == "xyza"
    assert drops(segments, missing=35) == "xyza"


def test_what_is_too_old_goes_also_behind_segments_of_a_clock_that_was_ahead() -> None:
    assert (
        drops(after_a_clock_ahead(), limits=RetentionLimits(10**12, 4 * MINUTE_NS, 10**12)) == "a"
    )


def test_pins_of_now_come_before_those_of_a_clock_that_was_ahead() -> None:
    pins = [pin(4, 4), pin(1004, 1005)]
    assert pinned_segments(after_a_clock_ahead(), pins, 20) == set("ay")
    assert drops(after_a_clock_ahead(), *pins, limits=ring_of(0, pin_bytes=10)) == "xyzbcdef"


def test_a_recorder_that_starts_before_its_clock_is_set_drops_the_oldest_as_ever() -> None:
    segments = [
        StoredSegment(name, (900 + n) * MINUTE_NS, (901 + n) * MINUTE_NS, 10)
        for n, name in enumerate("abcd")
    ]
    segments.append(StoredSegment("e", 904 * MINUTE_NS, MINUTE_NS, 10))
    assert drops(segments, limits=ring_of(35), minute=1) == "ab"


def test_a_ring_full_of_a_clock_that_was_ahead_makes_room_for_what_is_recorded_now(
    tmp_path: Path,
) -> None:
    now_ns = 1_760_000_000 * NS_PER_S
    make_recording(tmp_path, Identity("node-7", "boot", "0"))
    names = [segment_name(now_ns + minute * MINUTE_NS) for minute in (-2, -1, 1000, 1001)]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "cores.parquet").write_bytes(b"0123456789")
    Disk(
        tmp_path, lambda *_: pytest.fail("nothing is recorded here"), ring_of(25), 0.0, now_ns
    ).close()
    assert [path.name for path in segment_paths(tmp_path)] == names[:2]


def test_what_is_too_old_goes_two_at_a_time() -> None:
    """A recorder that starts with a clock that is a year ahead is set right before much is gone."""
    limits = RetentionLimits(10**12, 7 * MINUTE_NS, 10**12)
    assert drops(stored("abcde"), limits=limits, minute=9) == "ab"
    assert drops(stored("abcde"), limits=limits, minute=10**6) == "ab"
    assert drops(stored("cde"), limits=limits, minute=10**6) == "cd"


def test_a_reserve_of_pins_outlives_a_disk_at_its_floor_but_not_a_full_one() -> None:
    limits = ROOMY._replace(reserve_bytes=20)
    stock = Stock(stored("abcde"), [pin(0, 4)], limits)
    assert "".join(stock.to_drop(0, 10 * MINUTE_NS, 1000)) == "abc"
    assert "".join(stock.to_drop(0, 10 * MINUTE_NS, 1000, is_full=True)) == "abcde"


def test_a_pinned_segment_outlives_the_ring_and_does_not_count_in_it() -> None:
    assert drops(stored("abcde"), pin(1, 1), limits=ring_of(25)) == "ac"
    assert drops(stored("abcde"), pin(0, 4), limits=ring_of(0)) == ""


def test_a_pinned_segment_outlives_its_age() -> None:
    limits = RetentionLimits(10**12, MINUTE_NS, 10**12)
    assert drops(stored("abcde"), pin(1, 2), limits=limits) == "ad"


def test_pins_have_a_budget_of_their_own_and_the_newest_win() -> None:
    segments = stored("abcdef")
    pins = [pin(0, 1), pin(4, 5)]
    assert pinned_segments(segments, pins, 40) == set("abef")
    assert pinned_segments(segments, pins, 30) == set("bef")
    assert pinned_segments(segments, pins, 20) == set("ef")
    assert pinned_segments(segments, pins, 0) == set()


def test_what_the_pin_budget_cannot_hold_goes_with_the_ring() -> None:
    assert drops(stored("abcdef"), pin(0, 1), pin(4, 5), limits=ring_of(20, pin_bytes=20)) == "ab"


def test_a_pin_keeps_every_segment_it_touches() -> None:
    segments = stored("abc")
    assert pinned_segments(segments, [Pin(MINUTE_NS - 1, MINUTE_NS, "edge")], 100) == {"a", "b"}
    assert pinned_segments(segments, [Pin(90 * MINUTE_NS, 91 * MINUTE_NS, "later")], 100) == set()


def test_the_free_space_floor_takes_the_ring_first_then_pins_oldest_first() -> None:
    segments = stored("abcde")
    assert drops(segments, pin(1, 2), missing=1) == "a"
    assert drops(segments, pin(1, 2), missing=30) == "ade"
    assert drops(segments, pin(1, 2), missing=31) == "adeb"
    assert drops(segments, pin(1, 2), missing=1000) == "adebc"


def test_what_the_ring_drops_counts_as_freed() -> None:
    assert drops(stored("abcde"), limits=ring_of(30), missing=20) == "ab"


def test_overlapping_pins_are_merged_and_keep_the_first_reason() -> None:
    merged = merge_pins(
        [pin(5, 9, "second"), pin(0, 1, "alone"), pin(3, 6, "first"), pin(4, 5, "inside")]
    )
    assert merged == [pin(0, 1, "alone"), pin(3, 9, "first")]


def test_pins_that_touch_are_merged() -> None:
    assert merge_pins([Pin(0, 10, "a"), Pin(10, 20, "b"), Pin(21, 30, "c")]) == [
        Pin(0, 20, "a"),
        Pin(21, 30, "c"),
    ]
    assert merge_pins([]) == []


def test_a_pin_inside_another_does_not_shorten_it() -> None:
    assert merge_pins([pin(3, 9, "long"), pin(4, 5, "short")]) == [pin(3, 9, "long")]


def test_a_week_of_segments_is_asked_about_few_of_its_pins() -> None:
    class CountedPin(Pin):
        asked = 0

        def __getattribute__(self, name: str) -> object:
            CountedPin.asked += 1
            return super().__getattribute__(name)

    pins = [
        CountedPin(place * 4 * MINUTE_NS + 1, place * 4 * MINUTE_NS + 2, "incident")
        for place in range(500)
    ]
    segments = [
        StoredSegment(str(place), place * MINUTE_NS, (place + 1) * MINUTE_NS - 1, 10)
        for place in range(2000)
    ]
    assert pinned_segments(segments, pins, 10**12) == {str(place) for place in range(0, 2000, 4)}
    assert CountedPin.asked < 10_000
