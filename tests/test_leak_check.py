"""The leak check sees what it promises to see."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import LEAK_MARK

from necroscope.errors import NecroscopeError
from necroscope.sources.perf.bpf import RawTracepointProgram
from necroscope.sources.perf.bpf_assembler import Program

# What other tests mount and start meanwhile would be seen, too.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).parents[1]
Leaks = Callable[[], list[str]]

# Leaves a sleeper behind that is nobody's child any more, and says its pid.
ORPHAN = ["sh", "-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!"]


def loaded() -> RawTracepointProgram:
    does_nothing = Program()
    does_nothing.move_constant(0, 0)
    does_nothing.leave()
    return RawTracepointProgram(does_nothing.code(), "softirq_entry")


@pytest.fixture(autouse=True)
def impatient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests mean to leak: do not wait for it to go away."""
    conftest = request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    monkeypatch.setattr(conftest, "SETTLE_S", 0.0)


@pytest.fixture
def cgroup_root() -> Path:
    for root in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")):
        if (root / "cgroup.procs").exists() and os.access(root, os.W_OK):
            return root
    pytest.skip("no writable cgroup v2 hierarchy")


@pytest.fixture
def orphan() -> Iterator[Callable[[], int]]:
    pids: list[int] = []

    def start() -> int:
        pids.append(int(subprocess.run(ORPHAN, capture_output=True, check=True).stdout))
        return pids[-1]

    yield start
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_a_clean_test_leaves_nothing(leaks: Leaks) -> None:
    assert leaks() == []


def test_a_child_is_seen_even_as_a_zombie(leaks: Leaks) -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert leaks() == [f"processes: {child.pid} true"]
    child.wait()
    assert leaks() == []


def test_an_orphan_is_seen(leaks: Leaks, orphan: Callable[[], int]) -> None:
    pid = orphan()
    assert [left for left in leaks() if left.startswith(f"processes: {pid} ")]


def test_a_descriptor_is_seen(leaks: Leaks) -> None:
    with Path("/dev/null").open() as null:
        assert leaks() == [f"descriptors: {null.fileno()} /dev/null"]


@pytest.mark.root
def test_an_empty_cgroup_is_seen(leaks: Leaks, cgroup_root: Path) -> None:
    cgroup = cgroup_root / f"necroscope-test-{os.getpid()}"
    cgroup.mkdir()
    try:
        assert leaks() == [f"cgroups: {cgroup}"]
    finally:
        cgroup.rmdir()


@pytest.mark.root
def test_a_mount_is_seen(leaks: Leaks, tmp_path: Path) -> None:
    made = subprocess.run(["mount", "--bind", tmp_path, tmp_path], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"nothing can be mounted here: {made.stderr.strip()}")
    try:
        left = leaks()
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert [what for what in left if what.startswith("mounts: ") and f" {tmp_path} " in what]
    assert not [what for what in leaks() if what.startswith("mounts: ")]


@pytest.mark.root
@pytest.mark.kernel
def test_a_bpf_program_is_seen(leaks: Leaks) -> None:
    try:
        program = loaded()
    except (OSError, NecroscopeError) as error:
        pytest.skip(f"no BPF program can be loaded here: {error}")
    try:
        left = leaks()
    finally:
        program.close()
    assert [what for what in left if what.startswith("bpf_programs: ")]


@pytest.mark.root
@pytest.mark.kernel
def test_the_bpf_program_of_a_stranger_is_no_leak_of_ours(leaks: Leaks, tmp_path: Path) -> None:
    program = (
        "import os, sys, time; from tests.test_leak_check import loaded;"
        " held = loaded(); print(os.getpid(), flush=True); time.sleep(60)"
    )
    said = tmp_path / "said"
    environment = {name: text for name, text in os.environ.items() if name != LEAK_MARK}
    subprocess.run(
        ["sh", "-c", 'setsid "$0" -c "$1" >"$2" 2>&1 &', sys.executable, program, str(said)],
        cwd=ROOT,
        env=environment,
        check=True,
    )
    deadline = time.monotonic() + 60
    while not said.exists() or not said.read_text().endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    try:
        assert not [what for what in leaks() if what.startswith("bpf_programs: ")]
    finally:
        os.kill(int(said.read_text()), signal.SIGKILL)
