"""What the texts of sysstat have in common (mpstat, sar): the banner, times of day without a zone,
dates in any order, numbers with a point or a comma.
"""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

BANNER: Final = re.compile(
    rb"^Linux (?P<release>\S+)"
    rb" \((?P<host>[^)]*)\)\s+(?P<date>\S+)\s+_(?P<arch>\w+)_\s+\((?P<cpus>\d{1,6}) CPU\)"
)
STAMP: Final = re.compile(rb"(\d{1,2}):(\d\d):(\d\d)(?:[\s\xa0\xc2]*\b([AaPp])\.?[Mm]\.?)?\s+(.*)")


def hours_of(stamp: re.Match[bytes]) -> tuple[int, int, int]:
    hour, half = int(stamp[1]), (stamp[4] or b"").lower()
    return (hour % 12 + (12 if half == b"p" else 0) if half else hour), int(stamp[2]), int(stamp[3])


def percent(text: bytes) -> float:
    try:
        return min(max(float(text.replace(b",", b".")), 0.0), 100.0)
    except ValueError:
        return 0.0


class DayClock:
    """Seconds since 1970 of times of day: a time before the last one is of the next day."""

    def __init__(self, day: date | None) -> None:
        self.day = day
        self._last_s = 0

    def at_s(self, hour: int, minute: int, second: int) -> int:
        day = self.day or date(1970, 1, 1)
        try:
            at_s = int(
                datetime(
                    day.year, day.month, day.day, hour, minute, min(second, 59), tzinfo=UTC
                ).timestamp()
            )
        except ValueError:
            return self._last_s
        if at_s < self._last_s - 43200 and day < date.max - timedelta(days=1):
            self.day = day + timedelta(days=1)
            at_s += 86400
        self._last_s = at_s
        return at_s


def parse_date(text: str) -> date | None:
    """2026-04-15, 04/15/2026, 04/15/26, 15.04.2026, 15/04/2026; where both could be the month, the
    first is, as in `en_US`.
    """
    parts = re.findall(r"\d+", text)
    if len(parts) != 3 or max(map(len, parts)) > 4:
        return None
    first, second, third = map(int, parts)
    if len(parts[0]) == 4:
        year, month, day = first, second, third
    elif "." in text or first > 12:
        year, month, day = third, second, first
    else:
        year, month, day = third, first, second
    try:
        return date(year + 2000 if year < 100 else year, month, day)
    except ValueError:
        return None
