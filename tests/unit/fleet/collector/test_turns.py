"""Questions that come at once: few are answered, some wait, the others are told."""

import contextlib

import pytest

from necroscope.fleet.collector.refusal import Refusal
from necroscope.fleet.collector.turns import Turns


def test_who_finds_no_place_is_told_at_once_and_who_waits_too_long_then() -> None:
    without_waiting = Turns(at_once=1, waiting=0, longest_wait_s=3600)
    impatient = Turns(at_once=1, waiting=1, longest_wait_s=0.001)
    for turns in (without_waiting, impatient):
        with turns.turn():
            with pytest.raises(Refusal) as caught, turns.turn():
                pass
            assert (caught.value.status, caught.value.retry_after_s) == (503, 10)
        with turns.turn():
            pass


def test_an_answer_that_fails_gives_its_turn_back() -> None:
    turns = Turns(at_once=1, waiting=0, longest_wait_s=3600)
    for _ in range(3):
        with contextlib.suppress(ValueError), turns.turn():
            raise ValueError
