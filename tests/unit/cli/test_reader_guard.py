"""What reads a recording has a process of its own: how that ends is reported, and signals reach it."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no guard elsewhere")

GUARDED = """
import os, signal, sys, time
from necroscope.cli import main
sys.argv = ["necroscope", "info"]
def body():
{body}
main.main = body
main.run()
"""
Run = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def run() -> Iterator[Run]:
    started: list[subprocess.Popen[str]] = []

    def start(body: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", GUARDED.format(body=f"    {body}")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("name", ["SIGABRT", "SIGSEGV", "SIGBUS", "SIGKILL"])
def test_a_reader_that_was_brought_down_is_an_error_with_a_way_out(run: Run, name: str) -> None:
    out, said = run(f"os.kill(os.getpid(), signal.{name})").communicate(timeout=30)
    assert said.startswith(f"error: the process that read this recording was ended by {name}")
    assert "\nhint: " in said
    assert out == ""


@pytest.mark.parametrize("code", [0, 1, 6, 130])
def test_its_exit_code_and_output_are_the_commands(run: Run, code: int) -> None:
    process = run(f"print('told'); sys.exit({code})")
    assert process.communicate(timeout=30) == ("told\n", "")
    assert process.returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_reaches_the_reader(run: Run, number: signal.Signals) -> None:
    process = run(
        f"signal.signal({int(number)}, lambda *_: sys.exit(9)); print('.', flush=True);"
        " time.sleep(60)"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == ".\n"
    process.send_signal(number)
    assert process.wait(30) == 9


def test_a_reader_that_a_signal_ends_ends_its_parent_so(run: Run) -> None:
    process = run("print('.', flush=True); time.sleep(60)")
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()
    assert process.wait(30) == -signal.SIGTERM


def test_the_reader_does_not_outlive_its_parent(run: Run) -> None:
    process = run("print(os.getpid(), flush=True); time.sleep(60)")
    assert process.stdout is not None
    reader = int(process.stdout.readline())
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{reader}/cwd") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{reader}/exe")


def test_the_readers_end_is_seen_where_ends_of_children_are_ignored() -> None:
    """As under a shell after `trap '' CHLD`."""
    ignoring = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    program = ignoring + GUARDED.format(body="    sys.exit(7)")
    assert subprocess.run([sys.executable, "-c", program], timeout=30).returncode == 7


@pytest.mark.root
def test_process_1_of_a_container_ends_with_its_reader() -> None:
    program = GUARDED.format(body="    print('.'); sys.stdout.flush(); os.kill(os.getpid(), 15)")
    ended = subprocess.run(
        ["unshare", "--pid", "--fork", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (ended.stdout, ended.returncode) == (".\n", 128 + signal.SIGTERM)


def test_forty_threads_take_little_of_the_memory(run: Run) -> None:
    """A server has as many."""
    body = (
        "import threading; over = threading.Event();"
        " [threading.Thread(target=over.wait).start() for _ in range(40)];"
        " kept = bytearray(700 << 20); over.set(); print('taken')"
    )
    assert run(body).communicate(timeout=30) == ("taken\n", "")


def test_a_browser_has_the_users_memory(run: Run) -> None:
    body = (
        "import webbrowser, resource; from necroscope.cli.browser import opened_in_browser;"
        " webbrowser.open = lambda _: print(resource.getrlimit(resource.RLIMIT_DATA)[0]);"
        " opened_in_browser('http://127.0.0.1/').__enter__();"
        " print(resource.getrlimit(resource.RLIMIT_DATA)[0])"
    )
    own = resource.getrlimit(resource.RLIMIT_DATA)[1]
    assert run(body).communicate(timeout=30)[0] == f"{own}\n{1 << 30}\n"


def test_memory_is_limited_unless_more_is_asked_for(run: Run) -> None:
    take = "bytearray(1200 << 20); print('taken')"
    assert "MemoryError" in run(take).communicate(timeout=30)[1]
    more = run(take, NECROSCOPE_MEMORY="2GiB")  # type: ignore[call-arg]
    assert more.communicate(timeout=30)[0] == "taken\n"


def test_a_limit_that_is_not_a_size_is_an_error(run: Run) -> None:
    said = run("pass", NECROSCOPE_MEMORY="much").communicate(timeout=30)[1]  # type: ignore[call-arg]
    assert said.startswith("error: 'much' is not a valid size")
