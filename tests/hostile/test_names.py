"""Names that lie: empty, 200 bytes long, not UTF-8, full of terminal escapes and markup. Recorded
all the same, and harmless.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from necroscope.store.query import Store

pytestmark = [pytest.mark.kernel, pytest.mark.root]
CONTROLLERS = ("/sys/fs/cgroup/memory", "/sys/fs/cgroup")
NAMES = {
    "long": b"n" * 200,
    "not UTF-8": b"\xff\xfe\x80 caf\xe9",
    "escapes": b"\x1b]0;owned\x07\x1b[31;5mred\x9b2J",
    "markup": b"<script>alert(1)\xe2\x80\xaegpj.exe",
    "tabs": b"\ta\rb\x7f\x08c",
}
SPIN_WITHOUT_NAME = "import ctypes\nctypes.CDLL(None).prctl(15, b'', 0, 0, 0)\nwhile True: pass"


@pytest.fixture
def make_cgroup() -> Iterator[Callable[[bytes], bytes]]:
    """Makes cgroups of any name in a hierarchy that counts for samples; removed after the test."""
    controller = next((path for path in CONTROLLERS if Path(path, "cgroup.procs").exists()), None)
    if controller is None:
        pytest.skip("no cgroup hierarchy to make a cgroup in")
    top = os.fsencode(f"{controller}/necroscope-test-{os.getpid()}")
    made = [top]
    os.mkdir(top)

    def make(name: bytes) -> bytes:
        path = os.path.join(top, name)
        os.mkdir(path)
        made.append(path)
        return path

    yield make
    for path in reversed(made):
        remove_cgroup(path)


def remove_cgroup(path: bytes) -> None:
    """A process that was killed leaves its cgroup a moment later."""
    deadline = time.monotonic() + 10
    while os.path.exists(path):
        try:
            os.rmdir(path)
        except OSError:
            assert time.monotonic() < deadline, f"{path!r} cannot be removed"
            time.sleep(0.05)


class Spinners:
    """Programs that spin whenever nobody else wants a core."""

    def __init__(self, directory: Path) -> None:
        self._directory = os.fsencode(directory)
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, name: bytes) -> int:
        """A shell from a file of this name, which is also its comm, its module and its argv[0]."""
        path = os.path.join(self._directory, name)
        shutil.copy(os.path.realpath("/bin/sh"), path)
        return self._start([path, "-c", "while :; do :; done"])

    def start_without_name(self) -> int:
        pid = self._start([sys.executable, "-c", SPIN_WITHOUT_NAME])
        while Path(f"/proc/{pid}/comm").read_bytes() != b"\n":
            time.sleep(0.02)
        return pid

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()

    def _start(self, command: list[str | bytes]) -> int:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, preexec_fn=lambda: os.nice(19)
        )
        self._started.append(process)
        return process.pid


@pytest.fixture
def spinners(tmp_path: Path) -> Iterator[Spinners]:
    spinners = Spinners(tmp_path)
    yield spinners
    spinners.end()


def is_harmless(text: str) -> bool:
    return text.replace("\n", "").isprintable()


def output_of(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "necroscope", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_hostile_names_are_recorded_and_shown_without_harm(
    leak_check, make_cgroup, spinners, record
):
    pids = {kind: spinners.start(name) for kind, name in NAMES.items()} | {
        "empty": spinners.start_without_name()
    }
    for kind, pid in pids.items():
        cgroup = make_cgroup(NAMES.get(kind, b" "))
        Path(os.fsdecode(cgroup), "cgroup.procs").write_text(str(pid))
    top = [output_of("top", "--once"), output_of("top", "--json")]
    recorder = record("--label", "zone=\x1b[31mred")
    recorder.wait_until(
        lambda: {row["pid"] for row in recorder.rows("samples")} >= set(pids.values()), 40
    )
    remove_cgroup(make_cgroup(b"made \x1b[5m and gone"))
    recorder.wait_until(
        lambda: [row for row in recorder.rows("cgroup_ledger") if "and gone" in row["path"]]
    )
    screens = [run.communicate(timeout=60) for run in top]
    spinners.end()
    code, _, said = recorder.stop()
    assert code == 0
    assert is_harmless(said)
    assert_rows_are_printable(recorder.directory)
    assert_tasks_have_their_names(recorder.directory, pids)
    texts = [
        output_of("info", *options, str(recorder.directory)).communicate(timeout=60)
        for options in ((), ("--json",))
    ]
    for out, err in (*screens, *texts):
        assert err == b""
        assert out
        assert is_harmless(out.decode("utf-8"))


def assert_rows_are_printable(directory: Path) -> None:
    store = Store.open(directory)
    for table in ("samples", "cgroups", "cgroup_ledger", "tasks", "events", "gaps"):
        for row in store.rows(table, 0, 1 << 62).to_pylist():
            assert all(is_harmless(value) for value in row.values() if isinstance(value, str)), (
                table,
                row,
            )
    frames = store.samples(0, 1 << 62).frames.to_pylist()
    assert all(
        value.isprintable()
        for frame in frames
        for value in frame.values()
        if isinstance(value, str)
    )
    modules = {frame["module"].rpartition("/")[2] for frame in frames}
    assert NAMES["long"].decode() in modules
    assert "\\xff\\xfe\\x80 caf\\xe9" in modules


def assert_tasks_have_their_names(directory: Path, pids: dict[str, int]) -> None:
    rows = Store.open(directory).rows("samples", 0, 1 << 62).to_pylist()
    for kind, pid in pids.items():
        comms = {row["comm"] for row in rows if row["pid"] == pid}
        cgroups = {row["cgroup"] for row in rows if row["pid"] == pid}
        assert len(comms) == len(cgroups) == 1, (kind, comms, cgroups)
        assert next(iter(cgroups)).startswith(f"/necroscope-test-{os.getpid()}/")
        if kind == "empty":
            assert comms == {"[empty]"}
        elif kind == "escapes":
            assert comms == {"\\x1b]0;owned\\x07\\x1b[31;"}
