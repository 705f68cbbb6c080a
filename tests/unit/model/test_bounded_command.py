"""Commands of somebody's own: late ones, loud ones and those that leave children behind."""

import sys
import time
from pathlib import Path

import pytest

from necroscope.model.bounded_command import run_bounded

LONG = 20.0


def test_output_and_status_are_those_of_the_command() -> None:
    end = run_bounded([sys.executable, "-c", "print('a'); raise SystemExit(3)"], LONG, 100)
    assert (end.status, end.output) == (3, b"a\n")
    assert end.words == "ended with status 3"


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    end = run_bounded([sys.executable, "-c", "import time; time.sleep(600)"], 0.2, 100)
    assert (end.status, end.is_late) == (None, True)
    assert end.words == "took too long"


def test_a_command_that_prints_without_end_is_ended_and_its_first_bytes_are_kept() -> None:
    end = run_bounded([sys.executable, "-c", "while True: print('x' * 1000)"], LONG, 5_000)
    assert (end.status, end.is_cut, len(end.output)) == (None, True, 5_000)


def test_a_child_that_keeps_the_pipe_open_does_not_keep_us_and_does_not_live_on(
    tmp_path: Path,
) -> None:
    code = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c',"
        " 'import time; time.sleep(600)']); print(child.pid)"
    )
    end = run_bounded([sys.executable, "-c", code], LONG, 100)
    assert end.status == 0
    process = Path("/proc", end.output.decode().strip(), "stat")
    for _ in range(200):
        # Gone, or a zombie that init has not reaped yet.
        if not process.exists() or process.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.01)
    pytest.fail("the child lives on")


def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        run_bounded(["/nonexistent/program"], LONG, 100)


def test_a_command_that_closes_its_output_and_goes_on_is_late_too() -> None:
    code = "import os, time; os.close(1); time.sleep(600)"
    assert run_bounded([sys.executable, "-c", code], 0.5, 100).is_late
