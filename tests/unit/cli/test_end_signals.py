"""Waiting ends by a signal, or when whoever started us has gone; then signals are left to it."""

import os
import signal
import sys

import pytest

from necroscope.cli.end_signals import until_end_signal


def test_a_signal_ends_the_wait_and_the_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with until_end_signal(while_stdin=False) as is_over:
        assert not is_over(0)
        os.kill(os.getpid(), signal.SIGTERM)
        assert is_over(10)
    assert signal.getsignal(signal.SIGTERM) == before


def test_with_somebody_behind_us_only_its_end_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with until_end_signal(while_stdin=True) as is_over:
            os.kill(os.getpid(), signal.SIGTERM)
            assert not is_over(0)
            os.close(write_end)
            assert is_over(10)
