"""Durations, sizes and moments as people write them, and as we print them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from necroscope.errors import UsageError

NS_PER_US: Final = 1_000
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000

_DURATION_NS: Final = {
    "ms": NS_PER_MS,
    "s": NS_PER_S,
    "m": 60 * NS_PER_S,
    "h": 3600 * NS_PER_S,
    "d": 86400 * NS_PER_S,
}
_SIZE_BYTES: Final = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "kib": 1 << 10,
    "kb": 10**3,
    "m": 1 << 20,
    "mib": 1 << 20,
    "mb": 10**6,
    "g": 1 << 30,
    "gib": 1 << 30,
    "gb": 10**9,
    "t": 1 << 40,
    "tib": 1 << 40,
    "tb": 10**12,
}
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
_LONGEST_NUMBER: Final = 100  # longer ones overflow a float
_TIME_OF_DAY: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(\.\d{1,9})?)?Z?")


def parse_duration_ns(text: str) -> int:
    """`90s`, `10m`, `1h30m`, `250ms` in nanoseconds."""
    parts = list(_DURATION_PART.finditer(text))
    if not parts or "".join(part.group() for part in parts) != text or len(text) > _LONGEST_NUMBER:
        raise UsageError(
            f"{text!r} is not a valid duration", "write it as 250ms, 90s, 10m, 2h or 7d"
        )
    return sum(round(float(part[1]) * _DURATION_NS[part[2]]) for part in parts)


def parse_bytes(text: str) -> int:
    """`4GiB`, `500MB`, `1024` in bytes; a bare K, M, G or T is binary, as in most tools."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _SIZE_BYTES or len(text) > _LONGEST_NUMBER:
        raise UsageError(
            f"{text!r} is not a valid size", "write it as 500MB, 4GiB or a number of bytes"
        )
    return round(float(match[1]) * _SIZE_BYTES[match[2]])


def parse_moment_ns(text: str, now_ns: int) -> int:
    """In nanoseconds UTC: ISO 8601 (UTC unless it says otherwise), `10:30` or `10:30:07` for the
    last time the clock showed that before now, or `-5m` before now.
    """
    if text.startswith("-"):
        return now_ns - parse_duration_ns(text[1:])
    try:
        time_of_day = _TIME_OF_DAY.fullmatch(text)
        if time_of_day is not None:
            return _last_time_of_day_ns(time_of_day, now_ns)
        return datetime_ns(datetime.fromisoformat(text))
    except ValueError:
        raise UsageError(
            f"{text!r} is not a valid moment",
            "write it as 2026-04-15T10:30:00Z, as 10:30:07 (UTC), or as -5m",
        ) from None


def is_relative_moment(text: str) -> bool:
    """Whether a moment means something only next to the end of a recording."""
    return text.startswith("-") or _TIME_OF_DAY.fullmatch(text) is not None


def _last_time_of_day_ns(match: re.Match[str], now_ns: int) -> int:
    hour, minute, second = (int(match[group] or 0) for group in (1, 2, 3))
    day = datetime.fromtimestamp(now_ns // NS_PER_S, UTC)
    moment = day.replace(hour=hour, minute=minute, second=second, microsecond=0)
    fraction_ns = round(float(match[4] or 0) * NS_PER_S)
    if datetime_ns(moment) + fraction_ns > now_ns:
        moment -= timedelta(days=1)
    return datetime_ns(moment) + fraction_ns


def datetime_ns(moment: datetime) -> int:
    """In nanoseconds UTC; without a zone it is UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    whole = moment.replace(microsecond=0)
    return int(whole.timestamp()) * NS_PER_S + moment.microsecond * NS_PER_US


def format_moment(time_ns: int) -> str:
    """`2026-04-15T10:30:00.250Z`: UTC, to the millisecond."""
    seconds, rest_ns = divmod(time_ns, NS_PER_S)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ns // NS_PER_MS:03d}Z"


def format_duration(duration_ns: int) -> str:
    """Two leading units: `6.6 s`, `3 min 20 s`, `2 h 5 min`, `1.4 ms`."""
    if duration_ns < 0:
        return "-" + format_duration(-duration_ns)
    if duration_ns < NS_PER_MS:
        return f"{_three_digits(duration_ns / NS_PER_US)} µs"
    if duration_ns < NS_PER_S:
        return f"{_three_digits(duration_ns / NS_PER_MS)} ms"
    seconds = duration_ns / NS_PER_S
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for size, name, lower, lower_name in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // lower
            return f"{whole // size} {name}" + (f" {rest} {lower_name}" if rest else "")
    raise AssertionError("unreachable: whole >= 60")


def format_bytes(count_bytes: float) -> str:
    """`512 B`, `1.4 MiB`."""
    for name in ("B", "KiB", "MiB", "GiB"):
        if abs(count_bytes) < 1024:
            return (
                f"{count_bytes:.0f} {name}"
                if name == "B"
                else f"{_three_digits(count_bytes)} {name}"
            )
        count_bytes /= 1024
    return f"{_three_digits(count_bytes)} TiB"


def _three_digits(value: float) -> str:
    """Three digits that mean something; from 1,000 on `g` alone would write an exponent."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def format_share(share: float | None) -> str:
    """`1.4%`, or `–` while it is not known."""
    return "–" if share is None else f"{share:.1%}"
