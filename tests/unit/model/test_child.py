"""Children: never waited for without a limit, reaped in the end, started again ever more seldom."""

import os
import signal
import time
from itertools import pairwise

import pytest

from necroscope.model.child import AbandonedChildren, Child, Pauses, read_piece


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


class Stuck(Child):
    """As one in state D: no signal ends it."""

    signals = 0

    def kill(self) -> None:
        self.signals += 1


def read_all(descriptor: int) -> bytes:
    content = b""
    deadline = time.monotonic() + 10
    while (piece := read_piece(descriptor)) != b"" and time.monotonic() < deadline:
        content += piece or b""
    return content


def test_pipes_do_not_block_and_closing_the_input_ends_it() -> None:
    child = Child(shell("cat; echo done"), stdin=True, stdout=True)
    assert read_piece(child.stdout) is None
    os.write(child.stdin, b"told\n")
    child.close_input()
    assert read_all(child.stdout) == b"told\ndone\n"
    assert child.wait(10) == 0
    child.end(1)


def test_it_is_late_after_its_deadline_unless_it_has_ended() -> None:
    now = [0.0]
    child = Child(["sleep", "60"], deadline_s=2, clock=lambda: now[0])
    assert not child.is_late
    now[0] = 3
    assert child.is_late
    child.kill()
    assert child.wait(10) == -signal.SIGKILL
    assert not child.is_late


def test_a_child_that_no_signal_ends_is_left() -> None:
    child = Stuck(["sleep", "60"])
    began_s = time.monotonic()
    child.end(0.1)
    assert time.monotonic() - began_s < 10
    assert (child.signals, child.status) == (1, None)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait(10) == -signal.SIGKILL


def test_what_was_abandoned_is_reaped_when_it_is_dead() -> None:
    abandoned, stuck, killed = AbandonedChildren(), Stuck(["sleep", "60"]), Child(["sleep", "60"])
    abandoned.leave(stuck)
    abandoned.leave(killed)
    killed.wait(10)
    abandoned.reap()
    assert abandoned.pids == [stuck.pid]
    os.kill(stuck.pid, signal.SIGKILL)
    stuck.wait(10)
    abandoned.reap()
    assert len(abandoned) == 0


def test_a_terminals_interrupt_does_not_reach_it() -> None:
    child = Child(["sleep", "60"])
    assert os.getpgid(child.pid) == child.pid
    child.end(0)


def test_a_program_that_is_not_there_is_an_error_at_once() -> None:
    with pytest.raises(FileNotFoundError):
        Child(["/no/such/program"])


@pytest.mark.parametrize(
    ("is_first_free", "expected"), [(False, [5, 10, 20, 40, 40]), (True, [0, 5, 10, 20, 40])]
)
def test_pauses_double_up_to_the_longest(is_first_free: bool, expected: list[float]) -> None:
    pauses, starts = Pauses(5, 40, 100, is_first_free=is_first_free), [1000.0]
    for _ in expected:
        pauses.failed(starts[-1])
        starts.append(next(at for step in range(1000) if pauses.is_over(at := starts[-1] + step)))
    assert [later - sooner for sooner, later in pairwise(starts)] == expected


def test_pauses_begin_again_when_long_nothing_failed() -> None:
    pauses = Pauses(5, 40, 100)
    for now_s in (1000.0, 1010.0, 1200.0):
        pauses.failed(now_s)
    assert not pauses.is_over(1204.0)
    assert pauses.is_over(1205.0)
