"""The sealing child: exit codes, priority, and that it does its work without numpy."""

import subprocess
import sys

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
