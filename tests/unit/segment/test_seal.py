"""The sealing child: exit codes, priority, and that it does its work without numpy."""

import subprocess
import sys

import pytest

from necroscope.segment import seal as module
from necroscope.segment.reader import SegmentReader


def test_child_seals_and_says_nothing(record):
    live = record()
    rows = SegmentReader(live).tables
    child = [sys.executable, "-m", "necroscope.segment.seal", str(live)]
    for _ in range(2):
        done = subprocess.run(child, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    sealed = SegmentReader(live.with_name(live.name.removesuffix(".live"))).tables
    assert sealed.pop("core_minutes") > 0
    assert sealed == rows


def test_failure_is_an_exit_code_and_one_line(record, monkeypatch, capsys):
    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "seal", full)
    assert module.main([str(record())]) == 1
    assert capsys.readouterr().err.startswith("error: cannot seal")


def test_wrong_words_are_a_usage_error(capsys):
    assert module.main([]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.root
def test_the_child_of_a_recorder_with_high_priority_has_the_lowest():
    words = "import os; from necroscope.segment import seal; seal.lower_priority(); print(os.getpriority(os.PRIO_PROCESS, 0))"
    child = [sys.executable, "-c", f"import os; os.setpriority(os.PRIO_PROCESS, 0, -10); {words}"]
    assert subprocess.run(child, capture_output=True, text=True, check=True).stdout == "19\n"
