"""The process that has CAP_SYS_PTRACE for the recorder: starts what was allowed, as the recorder's
own children, and nothing else.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from necroscope.model.child import Child, read_piece
from necroscope.symbols.broker import ENDED, Broker
from necroscope.symbols.broker_process import BrokerProcess

SHELL = ["/bin/sh", "-c", "cat; echo $0 $PPID; exit 7"]
COUNT = ["/bin/sh", "-c", "echo $0 $1", "word"]
MISSING = ["/nowhere/program"]


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker(Path("/"), [("nothing", SHELL), ("number", COUNT), ("nothing", MISSING)])
    yield made
    made.close()


def read_all(child: Child) -> bytes:
    """To its end; closes the pipes."""
    content, deadline = b"", time.monotonic() + 10
    while (piece := read_piece(child.stdout)) != b"" and time.monotonic() < deadline:
        content += piece or b""
    child.end(10)
    return content


def test_a_child_is_the_askers_own_with_its_pipes_and_status(broker: Broker) -> None:
    child = Child(SHELL, stdin=True, stdout=True, start=broker.start)
    os.write(child.stdin, b"told ")
    child.close_input()
    assert read_all(child) == b"told /bin/sh %d\n" % os.getpid()
    assert child.wait(10) == 7


def test_a_child_that_hangs_is_killed_and_reaped(broker: Broker) -> None:
    child = Child(SHELL, stdin=True, stdout=True, start=broker.start)
    assert child.status is None
    child.kill()
    assert child.wait(10) == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_a_program_that_cannot_be_run_ends_with_127(broker: Broker) -> None:
    assert Child(MISSING, start=broker.start).wait(10) == 127


@pytest.mark.parametrize(
    "command",
    [
        ["/bin/sh", "-c", "id"],
        ["/bin/sh"],
        [],
        [*SHELL, "more"],
        COUNT,
        [*COUNT, "-1"],
        [*COUNT, "1", "2"],
        [*COUNT, ""],
    ],
)
def test_nothing_else_is_started(broker: Broker, command: list[str]) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(PermissionError):
        Child(command, stdin=True, stdout=True, start=broker.start)
    assert set(os.listdir("/proc/self/fd")) == before


def test_the_open_word_of_a_command_is_a_number(broker: Broker) -> None:
    assert read_all(Child([*COUNT, "42"], stdout=True, start=broker.start)) == b"word 42\n"


@pytest.mark.parametrize(
    ("words", "is_allowed"),
    [
        ([], True),
        (["--skip", "kernel"], True),
        (["--skip", "kernel", "--skip", "mounts"], True),
        (["--skip"], False),
        (["--root", "kernel"], False),
        (["--skip", "/etc"], False),
        (["kernel", "--skip"], False),
    ],
)
def test_stages_to_skip_may_follow_the_collector_of_facts(
    words: list[str], is_allowed: bool
) -> None:
    process = BrokerProcess(b"/", [[b"stages", b"collect"]])
    assert process._may_start([b"collect", *(word.encode() for word in words)]) is is_allowed


def test_of_other_processes_it_reads_three_files(broker: Broker) -> None:
    pid = os.getpid()
    assert broker.read(pid, "syscall")
    root = broker.open_root(pid)
    assert os.path.samestat(os.fstat(root), os.stat("/"))
    os.close(root)
    for name in ("mem", "environ", "../1/stack", "root"):
        with pytest.raises(PermissionError):
            broker.read(pid, name)


def test_of_other_processes_it_lists_the_sockets(broker: Broker) -> None:
    with socket.socket() as held, open("/dev/null", "rb"):
        assert b"%d" % os.fstat(held.fileno()).st_ino in broker.sockets(os.getpid()).split()
    with pytest.raises(OSError, match="No such file"):
        broker.sockets(1 << 30)


def test_its_end_is_reported_and_nothing_waits_for_it(broker: Broker) -> None:
    broker.read(os.getpid(), "syscall")
    assert not broker.has_ended
    os.kill(broker.pid, signal.SIGKILL)
    while not broker.has_ended:
        time.sleep(0.01)
    began_s = time.monotonic()
    with pytest.raises(OSError, match=ENDED.split(":")[0] + "|pipe"):
        Child(SHELL, start=broker.start)
    assert time.monotonic() - began_s < 1


def test_a_child_whose_start_was_given_up_is_ended(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.read(os.getpid(), "syscall")
    monkeypatch.setattr(broker, "_timeout_s", 0.05)
    os.kill(broker.pid, signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        Child(SHELL, stdin=True, start=broker.start)
    os.kill(broker.pid, signal.SIGCONT)
    monkeypatch.setattr(broker, "_timeout_s", 5.0)
    assert broker.read(os.getpid(), "syscall")
    assert broker._given_up == {}
    for stray in broker._strays:
        assert stray.wait(10) == -signal.SIGKILL


def test_it_ends_with_the_recorder(leftover: Callable[[str], int]) -> None:
    pid = leftover(
        "import os, signal, pathlib; from necroscope.symbols.broker import Broker;"
        "broker = Broker(pathlib.Path('/'), []); broker.read(os.getpid(), 'syscall');"
        "print(broker.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    deadline = time.monotonic() + 10
    while (
        Path(f"/proc/{pid}/cmdline").exists()
        and b"broker_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def leftover() -> Callable[[str], int]:
    def run(code: str) -> int:
        ended = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=False)
        return int(ended.stdout)

    return run
