"""A program that fails, is missing or does not end says so; nothing waits for it forever."""

import sys

import pytest
from tests.kernels import programs
from tests.kernels.failure import CannotTestError


def test_a_failure_is_reported_with_its_last_words() -> None:
    with pytest.raises(CannotTestError, match="no such suite"):
        programs.run([sys.executable, "-c", "import sys; sys.exit('no such suite')"])


def test_what_is_missing_is_named() -> None:
    with pytest.raises(CannotTestError, match="no-such-program is missing"):
        programs.run(["no-such-program"])


def test_what_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_LONGEST_S", 0.1)
    with pytest.raises(CannotTestError, match="did not end"):
        programs.run([sys.executable, "-c", "import time; time.sleep(60)"])
