"""What a stakeout says in the end."""

from pathlib import Path

from necroscope.analysis.report import Report
from necroscope.cli.stakeout import _as_text
from necroscope.stakeout.outcome import Outcome


def report() -> Report:
    return Report(1, "node", None, None, ())


def test_what_was_kept_of_a_catch_is_named() -> None:
    found = _as_text(Outcome(excerpts=["0001-run-0007"]), report(), Path("night"))
    assert "necroscope diagnose night/catches/0001-run-0007" in found
    assert "diagnose" not in _as_text(Outcome(), report(), Path("night"))
