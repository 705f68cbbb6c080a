"""A process that imports beside the one that asks: its answer, its errors and its end are ours."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from necroscope.cli.import_process import import_beside
from necroscope.errors import CorruptData

ENDED_BY = """
import os, signal
from necroscope.cli.import_process import import_beside
import_beside(lambda: os.kill(os.getpid(), signal.{name}), lambda: None)
"""


def test_the_work_is_done_by_another_process_and_the_rest_by_this_one() -> None:
    done_by: list[int] = []
    assert import_beside(os.getpid, lambda: done_by.append(os.getpid())) != os.getpid()
    assert done_by == [os.getpid()]


def test_an_error_comes_with_its_facts_and_hint() -> None:
    def fail() -> None:
        raise CorruptData("x.data: cut at byte 7", "capture again")

    with pytest.raises(CorruptData) as caught:
        import_beside(fail, lambda: None)
    assert (caught.value.facts, caught.value.hint) == ("x.data: cut at byte 7", "capture again")


def test_lack_of_memory_is_still_that() -> None:
    def fail() -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        import_beside(fail, lambda: None)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGABRT"])
def test_a_signal_that_ends_the_import_ends_who_waits_for_it(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", ENDED_BY.format(name=name)], check=False)
    assert done.returncode == -signal.Signals[name]


def test_who_is_interrupted_ends_the_import_which_removes_what_it_made(tmp_path: Path) -> None:
    begun, made = tmp_path / "begun", tmp_path / "made"

    def work() -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        made.touch()
        try:
            begun.touch()
            signal.pause()
        finally:
            made.unlink()

    def interrupted() -> None:
        while not begun.exists():
            time.sleep(0.001)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_beside(work, interrupted)
    assert not made.exists()
