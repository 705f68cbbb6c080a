"""Processes that are hard to look at: stopped, on a file system that hangs, with a root that lies.
Recording goes on.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration import hanging_fuse

from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store

pytestmark = [pytest.mark.kernel, pytest.mark.root]
# A target that hangs may hold up a drain for about two seconds; the rest is a busy machine's.
LONGEST_TICK_NS = 4 * NS_PER_S
SOURCE = """
__attribute__((noinline)) void FUNCTION(volatile long *n) { for (;;) ++*n; }
void _start(void) { volatile long n = 0; FUNCTION(&n); }
"""


@pytest.fixture
def compile_spinner(tmp_path: Path) -> Callable[[str], Path]:
    """A program that needs no library and spins in the function of this name."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc to compile a test program with")

    def compile_source(function: str) -> Path:
        program, source = tmp_path / function, tmp_path / f"{function}.c"
        source.write_text(SOURCE)
        options = [
            "-O1",
            "-static",
            "-nostdlib",
            "-fno-omit-frame-pointer",
            f"-DFUNCTION={function}",
        ]
        subprocess.run(["gcc", *options, "-o", program, source], check=True)
        return program

    return compile_source


@pytest.fixture
def spin() -> Iterator[Callable[..., int]]:
    """Starts a program that spins when nobody else wants the core, and waits until it does; ended
    with the test.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str | Path, root: Path = Path("/")) -> int:
        def preexec() -> None:
            os.nice(10)
            os.chroot(root)

        started.append(
            subprocess.Popen([str(program)], stdin=subprocess.DEVNULL, preexec_fn=preexec)
        )
        while user_ticks(started[-1].pid) < 2:
            time.sleep(0.01)
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


def user_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


class Fuse:
    def __init__(self, mount_point: Path, file: Path) -> None:
        self.mount_point = mount_point
        command = [sys.executable, hanging_fuse.__file__, str(mount_point), str(file)]
        self._server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self._server.stdout is not None
        if self._server.stdout.readline() != b"mounted\n":
            pytest.skip(
                f"no FUSE here: {self._server.communicate()[1].decode().strip().splitlines()[-1]}"
            )
        os.set_blocking(self._server.stdout.fileno(), False)

    def hang(self) -> None:
        self._server.send_signal(signal.SIGUSR1)

    def unanswered(self) -> bytes:
        """Numbers of the requests that hang, those not told before."""
        assert self._server.stdout is not None
        return self._server.stdout.read() or b""

    def let_go(self) -> None:
        """The end of the server aborts the connection; until then nobody who waits for an answer
        can be killed.
        """
        self._server.kill()
        self._server.communicate()
        subprocess.run(["umount", "-l", self.mount_point], check=False, stderr=subprocess.DEVNULL)


@pytest.fixture
def mount_fuse(tmp_path: Path) -> Iterator[Callable[[Path], Fuse]]:
    if not Path("/dev/fuse").exists():
        pytest.skip("no /dev/fuse on this kernel")
    mounted: list[Fuse] = []

    def mount(file: Path) -> Fuse:
        mount_point = tmp_path / "mount"
        mount_point.mkdir()
        mounted.append(Fuse(mount_point, file))
        return mounted[-1]

    yield mount
    for fuse in mounted:
        fuse.let_go()


def functions_of(directory: Path, pid: int) -> set[str | None]:
    """Innermost functions in which a process was sampled."""
    window = Store.open(directory).samples(0, 1 << 62)
    stacks, frames = window.stacks.to_pylist(), window.frames.to_pylist()
    innermost = {row["stack"] for row in window.samples.to_pylist() if row["pid"] == pid}
    user = [frames[stacks[stack]["frame"]] for stack in innermost]
    return {frame["function"] for frame in user if frame["kind"] == "user"}


def samples_of(recorder, pid: int) -> list[dict]:
    return [row for row in recorder.rows("samples") if row["pid"] == pid]


def longest_tick_ns(directory: Path, since_ns: int = 0) -> int:
    return max(
        row["elapsed_ns"]
        for row in Store.open(directory).rows("cores", since_ns, 1 << 62).to_pylist()
    )


def test_files_on_a_hung_file_system_cost_names_not_time(
    leak_check, compile_spinner, mount_fuse, spin, record
):
    fuse = mount_fuse(compile_spinner("spin_on_fuse"))
    hung = spin(fuse.mount_point / "program")
    os.kill(hung, signal.SIGSTOP)
    fuse.hang()
    recorder = record()
    warm_ns = recorder.wait_for_rows("samples", 10)[-1]["time"]
    os.kill(hung, signal.SIGCONT)
    innocent = spin(compile_spinner("spin_elsewhere"))
    recorder.wait_until(fuse.unanswered, 40)
    recorder.wait_until(lambda: samples_of(recorder, hung), 40)
    recorder.wait_until(lambda: "spin_elsewhere" in functions_of(recorder.directory, innocent), 60)
    code, _, said = recorder.stop()
    assert code == 0
    assert "Traceback" not in said
    assert functions_of(recorder.directory, hung) == {None}
    assert longest_tick_ns(recorder.directory, warm_ns) < LONGEST_TICK_NS


def test_a_stopped_process_is_looked_at_like_any_other(leak_check, compile_spinner, spin, record):
    pid = spin(compile_spinner("spin_and_stop"))
    recorder = record()
    warm_ns = recorder.wait_for_rows("samples")[-1]["time"]
    os.kill(pid, signal.SIGSTOP)
    stopped_ns = time.time_ns()
    recorder.wait_until(
        lambda: [row for row in recorder.rows("cores") if row["time"] > stopped_ns + 2 * NS_PER_S]
    )
    os.kill(pid, signal.SIGCONT)
    recorder.wait_until(
        lambda: [row for row in samples_of(recorder, pid) if row["time"] > stopped_ns + NS_PER_S]
    )
    assert recorder.stop()[0] == 0
    assert functions_of(recorder.directory, pid) == {"spin_and_stop"}
    assert longest_tick_ns(recorder.directory, warm_ns) < LONGEST_TICK_NS


def test_a_symlink_out_of_a_process_root_does_not_lend_it_the_hosts_names(
    leak_check, compile_spinner, spin, record, tmp_path
):
    true, host = compile_spinner("spin_in_container"), compile_spinner("spin_of_the_host")
    root = tmp_path / "container"
    root.mkdir()
    shutil.copy(true, root / "program")
    pid = spin("/program", root)
    (root / "program").unlink()
    (root / "program").symlink_to(host)
    assert (root / "program").resolve() == host, (
        "seen from the host, it leads to the host's program"
    )
    recorder = record()
    recorder.wait_until(lambda: len(samples_of(recorder, pid)) > 20, 40)
    assert recorder.stop()[0] == 0
    assert functions_of(recorder.directory, pid) <= {None, "spin_in_container"}
