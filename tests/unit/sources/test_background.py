"""Work that may wait is done beside the loop."""

import threading

import pytest

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.sources.background import Background


def test_the_result_is_taken_once_when_it_is_there() -> None:
    work: Background[int] = Background("test")
    assert work.is_idle
    assert work.take() is None
    work.start(lambda: 7)
    assert work.take(wait_s=5) == 7
    assert work.is_idle
    assert work.take() is None


def test_work_that_hangs_is_never_waited_for() -> None:
    released = threading.Event()
    work: Background[bool] = Background("test")
    work.start(lambda: released.wait(10))
    assert work.take() is None
    assert not work.is_idle
    work.close(wait_s=0.01)
    released.set()
    assert work.take(wait_s=5) is True


def test_what_it_raises_is_raised_where_it_is_taken() -> None:
    def fail() -> int:
        raise SourceUnavailable("the daemon is gone")

    work: Background[int] = Background("test")
    work.start(fail)
    with pytest.raises(SourceUnavailable, match="the daemon is gone"):
        work.take(wait_s=5)
    assert work.is_idle


def test_a_bug_in_it_becomes_an_error_of_ours() -> None:
    work: Background[float] = Background("test")
    work.start(lambda: 1 / 0)
    with pytest.raises(NecroscopeError, match="internal error: ZeroDivisionError"):
        work.take(wait_s=5)
