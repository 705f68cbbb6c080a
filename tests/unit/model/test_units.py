"""Durations, sizes and moments, as written and as printed."""

import pytest

from necroscope.errors import UsageError
from necroscope.model.units import (
    NS_PER_MS,
    NS_PER_S,
    format_bytes,
    format_duration,
    format_moment,
    parse_bytes,
    parse_duration_ns,
    parse_moment_ns,
)

NOW_NS = 1_776_249_000 * NS_PER_S


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("250ms", 250 * NS_PER_MS),
        ("90s", 90 * NS_PER_S),
        ("10m", 600 * NS_PER_S),
        ("1h30m", 5400 * NS_PER_S),
        ("7d", 604_800 * NS_PER_S),
        ("0.5s", 500 * NS_PER_MS),
        ("1m500ms", 60_500 * NS_PER_MS),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, expected_ns: int) -> None:
    assert parse_duration_ns(text) == expected_ns


@pytest.mark.parametrize(
    "text", ["", "5", "s", "5x", "5 s", "-5s", "5s ", "1e3s", "5ms3", "9" * 400 + "s", "\x1b[31m"]
)
def test_what_is_no_duration_is_a_usage_error_with_a_hint(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_duration_ns(text)
    assert caught.value.exit_code == 2
    assert "90s" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1024", 1024),
        ("4GiB", 4 << 30),
        ("500MB", 500_000_000),
        ("1k", 1024),
        ("1.5M", 3 << 19),
        (" 2 tib ", 2 << 40),
        ("7B", 7),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "GiB", "4 elephants", "-1", "1..5M", "0x10", "9" * 400])
def test_what_is_no_size_is_a_usage_error_with_a_hint(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_bytes(text)
    assert "4GiB" in caught.value.hint


def test_moments_are_utc_unless_they_say_otherwise() -> None:
    assert parse_moment_ns("2026-04-15T10:30:00", NOW_NS) == NOW_NS
    assert parse_moment_ns("2026-04-15T10:30:00Z", NOW_NS) == NOW_NS
    assert parse_moment_ns("2026-04-15T12:30:00+02:00", NOW_NS) == NOW_NS


def test_a_moment_keeps_its_microseconds_exactly() -> None:
    assert parse_moment_ns("2026-04-15T10:30:00.123456Z", NOW_NS) - NOW_NS == 123_456_000


def test_a_moment_before_now_is_written_with_a_minus() -> None:
    assert parse_moment_ns("-5m", NOW_NS) == NOW_NS - 300 * NS_PER_S


@pytest.mark.parametrize(
    "text", ["", "-", "-5", "yesterday", "2026-13-01", "24:30", "10:61", "2026-04-15T10:30:60Z"]
)
def test_what_is_no_moment_is_a_usage_error_with_a_hint(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_moment_ns(text, NOW_NS)
    assert caught.value.hint


def test_a_time_of_day_is_the_last_one_before_the_end_of_the_recording() -> None:
    assert parse_moment_ns("10:29", NOW_NS) == NOW_NS - 60 * NS_PER_S
    assert parse_moment_ns("10:29:59.5", NOW_NS) == NOW_NS - 500 * NS_PER_MS
    assert parse_moment_ns("10:30:00Z", NOW_NS) == NOW_NS
    assert parse_moment_ns("10:31", NOW_NS) == NOW_NS - 86_340 * NS_PER_S


@pytest.mark.parametrize(
    "time_ns", [0, NOW_NS, NOW_NS + 250 * NS_PER_MS, 4_102_444_799_999 * NS_PER_MS]
)
def test_a_printed_moment_is_read_back_to_the_millisecond(time_ns: int) -> None:
    assert parse_moment_ns(format_moment(time_ns), NOW_NS) == time_ns


def test_a_moment_is_printed_as_utc_to_the_millisecond() -> None:
    assert format_moment(NOW_NS + 250 * NS_PER_MS + 999_999) == "2026-04-15T10:30:00.250Z"


@pytest.mark.parametrize(
    ("duration_ns", "expected"),
    [
        (0, "0 µs"),
        (1_500, "1.5 µs"),
        (999_600, "1000 µs"),
        (1_400_000, "1.4 ms"),
        (999_600_000, "1000 ms"),
        (6_600_000_000, "6.6 s"),
        (200 * NS_PER_S, "3 min 20 s"),
        (3600 * NS_PER_S - 1, "1 h"),
        (7500 * NS_PER_S, "2 h 5 min"),
        (90_000 * NS_PER_S, "1 d 1 h"),
        (-6_600_000_000, "-6.6 s"),
    ],
)
def test_a_duration_is_printed_in_its_two_leading_units_and_never_with_an_exponent(
    duration_ns: int, expected: str
) -> None:
    assert format_duration(duration_ns) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, "1023 B"),
        (1 << 10, "1 KiB"),
        (1010 << 10, "1010 KiB"),
        (1_468_006, "1.4 MiB"),
        (4 << 30, "4 GiB"),
        (5000 << 40, "5000 TiB"),
    ],
)
def test_a_size_is_printed_in_binary_units_and_never_with_an_exponent(
    count: int, expected: str
) -> None:
    assert format_bytes(count) == expected
