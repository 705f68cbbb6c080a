"""Differences of counters of 32 bits."""

import pytest

from necroscope.sources.procfs.counters import increases_32_bit


@pytest.mark.parametrize(
    ("now", "before", "rises"),
    [
        ((7, 5), (5, 5), [2, 0]),
        ((3,), (2**32 - 1,), [4]),
        ((3,), (1000,), None),
        ((9, 0), (5, 2**31 - 1), None),
        ((), (), []),
    ],
)
def test_a_wrap_goes_on_and_a_restart_is_none(now: tuple[int, ...], before: tuple[int, ...], rises: list[int] | None) -> None:
    assert increases_32_bit(now, before) == rises
