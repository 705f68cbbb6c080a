"""Processes of the lab, started for real: bounded, named, and gone when they are told to go."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from necroscope.lab.actor import kill_marked, list_marked
from necroscope.lab.ledger import ActLedger
from necroscope.lab.scenario import CannotProvoke, LabError
from necroscope.lab.stage import Stage

pytestmark = pytest.mark.kernel


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with ActLedger.make(tmp_path / "state") as ledger:
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        made = Stage(ledger, max(os.sched_getaffinity(0)), 5, 1, scratch)
        yield made
        made.stop_actors()
        assert kill_marked(ledger.name) == []


def status(pid: int) -> dict[str, str]:
    return dict(
        line.split(":\t", 1)
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if ":\t" in line
    )


def wait_for(pid: int, name: str) -> None:
    deadline = time.monotonic() + 10
    while (
        status(pid)["Name"] != name or _program(pid) != name.encode()
    ) and time.monotonic() < deadline:
        time.sleep(0.01)


def _program(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]


def test_a_program_has_the_name_it_was_given(stage: Stage) -> None:
    actor = stage.start(["sleep", "60"], comm="node-agent-x7", cpu=stage.core)
    wait_for(actor.pid, "node-agent-x7")
    assert status(actor.pid)["Name"] == "node-agent-x7"
    assert _program(actor.pid) == b"node-agent-x7"
    assert status(actor.pid)["Cpus_allowed_list"] == str(stage.core)


def test_a_function_runs_in_a_process_of_its_own(stage: Stage, tmp_path: Path) -> None:
    actor = stage.start(time.sleep, 60, comm="ranker-svc-ab", nice=5)
    assert status(actor.pid)["Name"] == "ranker-svc-ab"
    assert os.getsid(actor.pid) == actor.pid
    assert os.getpriority(os.PRIO_PROCESS, actor.pid) == 5
    assert actor.exit_code is None
    actor.stop()
    assert actor.exit_code == -signal.SIGKILL


def test_it_is_bounded(stage: Stage) -> None:
    actor = stage.start(time.sleep, 60, memory_bytes=1 << 30, files=100)
    limits = Path(f"/proc/{actor.pid}/limits").read_text()
    assert limits.split("Max address space")[1].split()[0] == str(1 << 30)
    assert limits.split("Max open files")[1].split()[0] == "100"
    assert Path(f"/proc/{actor.pid}/oom_score_adj").read_text().strip() == "1000"


def test_what_cannot_start_says_why(stage: Stage) -> None:
    with pytest.raises(CannotProvoke, match="no program no-such-program"):
        stage.start(["no-such-program"])
    with pytest.raises(CannotProvoke, match=r"cannot enter|No such file"):
        stage.start(time.sleep, 60, netns="no-such-namespace")


def test_a_process_that_ends_too_early_ends_the_incident(stage: Stage) -> None:
    actor = stage.start(["false"], comm="tool-ab")
    actor.wait(10)
    stage.begin()
    with pytest.raises(LabError, match="tool-ab ended with 1 too early"):
        stage.hold(actor)


def test_the_mark_finds_grandchildren_too(stage: Stage) -> None:
    stage.start(["sh", "-c", "setsid sleep 61 & setsid sleep 62 & wait"], comm="shell-ab")
    deadline = time.monotonic() + 10
    while len(list(list_marked(stage._ledger.name))) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(list(list_marked(stage._ledger.name))) == 3
    stage.stop_actors()
    assert kill_marked(stage._ledger.name) == []
    assert list(list_marked(stage._ledger.name)) == []


def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom necroscope.lab.ledger import ActLedger\nfrom"
        " necroscope.lab.stage import Stage\nledger = ActLedger.make(Path(sys.argv[1]) /"
        " 'state')\nprint(Stage(ledger, 0, 5, 1, Path(sys.argv[1])).start(time.sleep, 60).pid,"
        " flush=True)\ntime.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while (
        Path(f"/proc/{pid}").exists()
        and status(pid)["State"][0] != "Z"
        and time.monotonic() < deadline
    ):
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists() or status(pid)["State"][0] == "Z"


def test_the_seed_decides(stage: Stage) -> None:
    assert stage.random.random() == Random(1).random()
