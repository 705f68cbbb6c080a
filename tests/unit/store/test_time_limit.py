"""The time limit runs on the clock it is given."""

from necroscope.store.time_limit import TimeLimit


def test_it_is_over_when_its_seconds_are():
    moments = iter([100.0, 101.9, 102.0])
    limit = TimeLimit(2, clock=lambda: next(moments))
    assert [limit.is_over(), limit.is_over()] == [False, True]
