"""`necroscope stakeout` with a job that fails when it is starved, and something that starves it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from necroscope.analysis.engine import diagnose
from necroscope.store.query import Store

# A run is well if it is not kept from its core for more than a second in all.
JOB = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
late = 0.0
for _ in range(100):
    before = time.monotonic()
    time.sleep(0.01)
    late += max(0.0, time.monotonic() - before - 0.2)
    if late > 1.0:
        sys.exit("starved")
"""
# In the kernel, in real time. (The lab's own rt-hog hurts a thread of a device that it makes
# itself, of which a recorder that is running already learns within a minute.) It goes on for as
# long as the stakeout lingers.
HOG = """
import os, sys, time
with open("/proc/self/comm", "w") as comm: comm.write("night-hog")
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
end, page = time.monotonic() + 9, bytearray(1 << 22)
with open("/dev/zero", "rb", buffering=0) as zeros:
    while time.monotonic() < end: zeros.readinto(page)
"""


@pytest.fixture
def summary(tmp_path: Path) -> dict:
    """Of a stakeout whose job was starved after its second run."""
    core = max(os.sched_getaffinity(0))
    directory = tmp_path / "night"
    job = [sys.executable, "-c", JOB, str(core)]
    command = [
        sys.executable,
        "-m",
        "necroscope",
        "stakeout",
        "--dir",
        str(directory),
        "--for",
        "60s",
        "--json",
        "--",
        *job,
    ]
    stakeout = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(runs_of(directory)) < 2:
        assert stakeout.poll() is None, stakeout.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    hog = subprocess.Popen([sys.executable, "-c", HOG, str(core)])
    said, complaints = stakeout.communicate(timeout=90)
    hog.wait(30)
    assert stakeout.returncode == 1, complaints
    return json.loads(said) | {
        "kept": json.loads((directory / "stakeout.json").read_text()),
        "dir": directory,
        "core": core,
    }


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
    assert summary["ended_by"] == "failure"
    low, high = summary["success_rate"]["interval"]
    assert low < summary["success_rate"]["share"] < high
    log = summary["dir"] / "runs" / summary["runs"][-1]["output"]
    assert log.read_text() == "starved\n"
    assert summary["kept"]["runs"] == summary["runs"]
    assert (summary["dir"] / "recording" / "recording.json").exists()
    held = [one for one in summary["report"]["incidents"] if one["core"] == summary["core"]]
    assert [(one["mode"], one["verdict"]["culprit"]["comm"]) for one in held] == [
        ("system", "night-hog")
    ]
    (kept,) = summary["excerpts"]
    assert kept == f"0001-run-{summary['runs'][-1]['run']:04}"
    assert summary["core"] in [
        one.core for one in diagnose(Store.open(summary["dir"] / "catches" / kept)).incidents
    ]
