"""CAP_SYS_PTRACE, which reads and writes every process's memory, is not the recorder's: only the
children that need it have it, also those that are started again.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import SETTLE_S
from tests.integration import private_view
from tests.programs import program

from necroscope.model.capabilities import DAC_READ_SEARCH, SYS_ADMIN, SYS_PTRACE

pytestmark = [pytest.mark.kernel, pytest.mark.root]

CAP_SYSLOG, CAP_PERFMON, CAP_BPF = 34, 38, 39
OF_THE_SERVICE = (DAC_READ_SEARCH, SYS_PTRACE, CAP_SYSLOG, CAP_PERFMON, CAP_BPF)
# Its functions are named by the symbols of a file that only root may read.
SPIN = """
__attribute__((noinline)) void named_by_its_own_file(void) { for (volatile int i = 0; i < 100000; i++); }
int main(void) { for (;;) named_by_its_own_file(); }
"""
GIVES_UP = """
import os, subprocess, sys
from necroscope.model import capabilities
capabilities.keep(capabilities.held() - {capabilities.SYS_PTRACE})
code = "import sys; open(f'/proc/{sys.argv[1]}/mem', 'r+b').close()"
print(subprocess.run([sys.executable, "-c", code, sys.argv[1]], stderr=subprocess.PIPE).returncode)
try:
    open(f"/proc/{sys.argv[1]}/mem", "r+b")
except PermissionError:
    print("refused")
"""


def capabilities_of(task: Path, kind: str = "CapPrm") -> set[int]:
    lines = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines())
    bits = int(lines[kind], 16)
    return {number for number in range(64) if bits >> number & 1}


def children(pid: int, module: str) -> list[Path]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    processes = [Path("/proc", child) for child in listed]
    wanted = f"necroscope.symbols.{module}".encode()
    return [one for one in processes if wanted in (one / "cmdline").read_bytes().split(b"\0")]


@pytest.fixture
def spinner() -> Iterator[int]:
    """A program of root's, in a file that others may not read."""
    compiler = program("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    folder = Path(tempfile.mkdtemp(prefix="necroscope-hostile-"))
    (folder / "program.c").write_text(SPIN)
    subprocess.run([compiler, "-O0", "-o", folder / "program", folder / "program.c"], check=True)
    (folder / "program").chmod(0o700)
    child = subprocess.Popen([folder / "program"], preexec_fn=lambda: os.nice(10))
    yield child.pid
    child.kill()
    child.wait()
    shutil.rmtree(folder)


@pytest.fixture
def open_place() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="necroscope-test-"))
    os.chown(place, private_view.NOBODY, private_view.NOBODY)
    yield place
    shutil.rmtree(place)


def named_functions(rows: Callable[[str], list[dict]]) -> int:
    return sum(row["function"] == "named_by_its_own_file" for row in rows("frames"))


@pytest.mark.parametrize("who", ["the service", "root"])
def test_only_the_children_that_need_it_have_ptrace_also_when_they_are_started_again(
    leak_check, record, spinner, open_place, tmp_path, who
):
    stage = tmp_path / "stage"
    stage.mkdir()
    how = {
        "the service": lambda: private_view.become_nobody(stage, OF_THE_SERVICE),
        "root": lambda: None,
    }
    recorder = record("--segment", "5s", directory=open_place / "r", preexec=how[who])
    recorder.wait_until(lambda: named_functions(recorder.rows), 40)
    pid = recorder.process.pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for kind in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
            assert SYS_PTRACE not in capabilities_of(task, kind)
        assert "NoNewPrivs:\t1" in (task / "status").read_text()
    (broker,) = children(pid, "broker_process")
    (lookup,) = children(pid, "lookup_process")
    kept = {DAC_READ_SEARCH, SYS_PTRACE} | ({SYS_ADMIN} if who == "root" else set())
    for helper in (broker, lookup):
        assert kept <= capabilities_of(helper, "CapEff")
        assert not {CAP_BPF, CAP_PERFMON, CAP_SYSLOG} & capabilities_of(helper)
    os.kill(int(lookup.name), signal.SIGKILL)
    (second,) = recorder.wait_until(
        lambda: [one for one in children(pid, "lookup_process") if one != lookup], 40
    )
    assert SYS_PTRACE in capabilities_of(second, "CapEff")
    # A new segment asks for its names again.
    before = len(recorder.rows("frames"))
    recorder.wait_until(lambda: len(recorder.rows("frames")) > before, 40)
    code, _, said = recorder.stop()
    assert code == 0
    assert "Traceback" not in said
    assert "keeps CAP_SYS_PTRACE" not in said
    causes = [row["cause"] for row in recorder.rows("gaps") if row["table"] not in ("frames",)]
    assert not [cause for cause in causes if "CAP_" in cause and "SYS_ADMIN" not in cause]


def test_a_broker_that_ends_costs_names_and_not_the_recorder(leak_check, record, spinner):
    recorder = record()
    recorder.wait_until(lambda: named_functions(recorder.rows), 40)
    pid = recorder.process.pid
    (broker,) = children(pid, "broker_process")
    (lookup,) = children(pid, "lookup_process")
    os.kill(int(broker.name), signal.SIGKILL)
    os.kill(int(lookup.name), signal.SIGKILL)
    recorder.wait_until(lambda: "started again" in recorder.said(), 20)
    seen = len(recorder.rows("cores"))
    recorder.wait_for_rows("cores", seen + 6)
    code, _, said = recorder.stop()
    assert code == 0
    assert "Traceback" not in said
    assert [row for row in recorder.rows("gaps") if row["table"] == "frames"]


@pytest.mark.parametrize("who", ["the service", "root"])
def test_what_was_given_up_is_gone_for_programs_that_are_started_too(spinner, tmp_path, who):
    how = {
        "the service": lambda: private_view.become_nobody(tmp_path, OF_THE_SERVICE),
        "root": lambda: None,
    }
    ended = subprocess.run(
        [sys.executable, "-c", GIVES_UP, str(spinner)],
        stdout=subprocess.PIPE, text=True, preexec_fn=how[who], check=True, timeout=SETTLE_S + 30,
    )  # fmt: skip
    assert ended.stdout == "1\nrefused\n"
