"""`necroscope stakeout` with a job that fails when it is starved, and something that starves it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

# A run is well if it is never kept from its core for half a second.
JOB = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
for _ in range(100):
    before = time.monotonic()
    time.sleep(0.01)
    if time.monotonic() - before > 0.5:
        sys.exit("starved")
"""
HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
end = time.monotonic() + 5
while time.monotonic() < end: pass
"""


@pytest.fixture
def summary(tmp_path: Path) -> dict:
    """Of a stakeout whose job was starved after its second run."""
    core = max(os.sched_getaffinity(0))
    directory = tmp_path / "night"
    job = [sys.executable, "-c", JOB, str(core)]
    command = [sys.executable, "-m", "necroscope", "stakeout", "--dir", str(directory), "--for", "60s", "--json", "--", *job]
    stakeout = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(runs_of(directory)) < 2:
        assert stakeout.poll() is None, stakeout.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    hog = subprocess.Popen([sys.executable, "-c", HOG, str(core)])
    said, complaints = stakeout.communicate(timeout=90)
    hog.wait(30)
    assert stakeout.returncode == 0, complaints
    return json.loads(said) | {"kept": json.loads((directory / "stakeout.json").read_text()), "dir": directory}


def runs_of(directory: Path) -> list:
    try:
        return json.loads((directory / "stakeout.json").read_text())["runs"]
    except FileNotFoundError:
        return []


@pytest.mark.root
@pytest.mark.kernel
def test_the_first_failure_ends_it_and_is_explained(summary: dict) -> None:
    assert summary["runs"][-1]["outcome"] == "failed"
    assert [run["outcome"] for run in summary["runs"][:2]] == ["succeeded", "succeeded"]
    assert summary["ended"] == f"run {summary['runs'][-1]['run']} failed"
    low, high = summary["success_rate"]["interval"]
    assert low < summary["success_rate"]["share"] < high
    log = summary["dir"] / "runs" / summary["runs"][-1]["output"]
    assert log.read_text() == "starved\n"
    assert summary["kept"]["runs"] == summary["runs"]
    assert (summary["dir"] / "recording" / "recording.json").exists()
    assert "incidents" in summary["report"]
