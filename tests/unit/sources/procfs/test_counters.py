"""Differences of counters of 32 bits."""

import pytest

from necroscope.model.units import NS_PER_S
from necroscope.sources.procfs.counters import increases_32_bit


@pytest.mark.parametrize(
    ("now", "before", "rises"),
    [
        ((7, 5), (5, 5), [2, 0]),
        ((3,), (2**32 - 1,), [4]),
        ((3,), (1000,), None),
        ((9, 0), (5, 2**31 - 1), None),
        ((5, 9), (3_000_000_000, 9), None),
        ((5,), (2**32 - 99_999_995,), [100_000_000]),
        ((6,), (2**32 - 99_999_995,), None),
        ((), (), []),
    ],
)
def test_a_wrap_goes_on_and_a_restart_is_none(
    now: tuple[int, ...], before: tuple[int, ...], rises: list[int] | None
) -> None:
    assert increases_32_bit(now, before, 10 * NS_PER_S) == rises


def test_after_a_long_time_a_fall_below_half_the_range_is_still_a_restart() -> None:
    assert increases_32_bit((3,), (1000,), 3600 * NS_PER_S) is None
