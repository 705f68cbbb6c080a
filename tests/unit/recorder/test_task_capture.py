"""Who is on the core, and the Python stack that py-spy gives of them: a shell script stands for
py-spy.
"""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from necroscope.model.frame import Frame
from necroscope.model.reading import Gap, Rows
from necroscope.model.tables import TABLES
from necroscope.recorder import task_capture
from necroscope.recorder.task_capture import TaskCapture, parse_py_spy, syscall_of
from necroscope.recorder.triggers import NO_CPU, Trigger
from necroscope.sources.perf.seen_tasks import SeenTask
from necroscope.sources.procfs.blocked_tasks import BlockedTask
from necroscope.symbols.messages import TaskDescription

SATURATED = Trigger("saturated", 3, "system 99 %")
BLOCKED = Trigger("io_blocked", NO_CPU, "7 tasks wait for I/O")
HUNG = Trigger("io_hung", NO_CPU, "7 tasks wait for I/O")
HANG = "exec sleep 60"
PYTHON = TaskDescription("python3", cgroup="/told", state="R", executable="python3.11")
READING = (
    Frame("copy_to_user", "[kernel]", "kernel", None, None),
    Frame("__x64_sys_read", "[kernel]", "kernel", None, None),
)
COLUMNS = [column.name for column in TABLES["tasks"].columns]


class FakeSampler:
    """Tasks by core; every stack is a read."""

    def __init__(self, tasks_of_core: dict[int, list[SeenTask]]) -> None:
        self.rings = SimpleNamespace(cpus=set(tasks_of_core))
        self.frames_of = lambda stack: READING
        self.seen_on = lambda cpu, now_ns: tasks_of_core[cpu]


class FakeDescriber:
    def __init__(self, description: TaskDescription) -> None:
        self._description = description
        self.asked: list[tuple[int, int, int | None]] = []

    def describe_task(self, pid: int, tid: int, first_argument: int | None) -> TaskDescription:
        self.asked.append((pid, tid, first_argument))
        return self._description


class Captured:
    """A `TaskCapture` whose clock stands until the test moves it."""

    def __init__(self, sampler: FakeSampler, describer: FakeDescriber, root: Path) -> None:
        self.describer = describer
        self.now_s = 100.0
        self._capture = TaskCapture(sampler, describer, root, lambda: self.now_s)

    def fire(self, trigger: Trigger = SATURATED) -> list[dict[str, Any]]:
        return named(self._capture.capture(trigger, 17))

    def collect(self) -> list[dict[str, Any]]:
        """At once: whatever py-spy does, nothing is waited for."""
        started_s = time.perf_counter()
        rows = named(self._capture.collect())
        assert time.perf_counter() - started_s < 1
        return rows

    def wait(self) -> list[dict[str, Any]]:
        deadline_s = time.perf_counter() + 20
        while not (rows := self.collect()):
            assert time.perf_counter() < deadline_s, "py-spy did not end"
            time.sleep(0.01)
        return rows

    def take_gaps(self) -> list[Gap]:
        return self._capture.take_gaps()

    def close(self) -> list[dict[str, Any]]:
        return named(self._capture.close())


def named(rows: Rows) -> list[dict[str, Any]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def seen(
    pid: int,
    tid: int | None = None,
    samples: int = 90,
    comm: str = "worker",
    argument: int | None = None,
) -> SeenTask:
    return SeenTask(pid, pid if tid is None else tid, comm, "/sampled", samples, 0, argument)


def thread(tid: int, *names: str) -> dict[str, Any]:
    frames = [
        {"name": name, "short_filename": "train.py", "line": line}
        for line, name in enumerate(names, 1)
    ]
    return {"os_thread_id": tid, "frames": frames}


def answering(tmp_path: Path, answer: object) -> str:
    (tmp_path / "answer").write_text(answer if isinstance(answer, str) else json.dumps(answer))
    return f"exec cat {tmp_path / 'answer'}"


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The processes that were started; they end with the test."""
    started: list[Any] = []
    start = subprocess.Popen
    monkeypatch.setattr(
        subprocess,
        "Popen",
        lambda *words, **options: started.append(start(*words, **options)) or started[-1],
    )
    yield started
    for child in started:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()


@pytest.fixture
def capture_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, children: list[Any]
) -> Callable[..., Captured]:
    """What this py-spy and these tasks, on core 3 or by core, make of a trigger."""

    def make(
        py_spy: str,
        tasks: list[SeenTask] | dict[int, list[SeenTask]],
        description: TaskDescription = PYTHON,
    ) -> Captured:
        program = tmp_path / "py-spy"
        program.write_text(f"#!/bin/sh\n{py_spy}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        sampler, describer = (
            FakeSampler({3: tasks} if isinstance(tasks, list) else tasks),
            FakeDescriber(description),
        )
        return Captured(sampler, describer, tmp_path)

    return make


def test_the_system_call_is_the_outermost_entry() -> None:
    assert (
        syscall_of(["copy_to_user", "ksys_read", "__x64_sys_pread64", "do_syscall_64"]) == "pread64"
    )
    assert syscall_of(["do_sys_openat2", "__arm64_sys_openat", "el0_svc_common"]) == "openat"
    assert syscall_of(["clear_page", "x64_sys_call"]) is None
    assert syscall_of([]) is None


def test_a_dump_is_read_for_the_thread_that_was_seen() -> None:
    dump = json.dumps([thread(7, "idle"), thread(8, "walk", "main")]).encode()
    assert parse_py_spy(dump, 8) == "walk (train.py:1);main (train.py:2)"
    assert parse_py_spy(dump, 9) == "idle (train.py:1)"


@pytest.mark.parametrize(
    "dump",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"[1]",
        b'[{"frames": 3}]',
        b'[{"frames": [{}]}]',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_a_dump_that_is_none_has_no_stack(dump: bytes) -> None:
    assert parse_py_spy(dump, 7) is None


def test_a_task_is_reported_by_its_samples_and_by_proc(capture_of: Callable[..., Captured]) -> None:
    found = TaskDescription(
        "dockerd",
        state="R",
        policy="other",
        priority=0,
        cpus_allowed="0-3",
        file="/proc/1/mountinfo",
    )
    captured = capture_of(
        HANG, [seen(40, 41, comm="dockerd", argument=5), seen(50, argument=1 << 40)], found
    )
    first, second = captured.fire()
    assert (first["time"], first["cpu"], first["trigger"], first["pid"], first["tid"]) == (
        17,
        3,
        "saturated",
        40,
        41,
    )
    assert (first["syscall"], first["file"], first["cgroup"]) == (
        "read",
        "/proc/1/mountinfo",
        "/sampled",
    )
    assert (first["stack"], first["python_stack"]) == ("copy_to_user;__x64_sys_read", None)
    assert second["pid"] == 50
    assert captured.describer.asked == [(40, 41, 5), (50, 50, None)], "an address is no descriptor"


def test_a_trigger_without_a_core_looks_at_the_busiest_task_of_each(
    capture_of: Callable[..., Captured],
) -> None:
    tasks = {cpu: [seen(100 + cpu, samples=cpu), seen(200, samples=0)] for cpu in range(20)}
    rows = capture_of(HANG, tasks, TaskDescription("kubelet")).fire(
        Trigger("kernel_log", NO_CPU, "reset")
    )
    assert [row["pid"] for row in rows] == [100 + cpu for cpu in range(19, 3, -1)]


def test_a_python_stack_comes_with_its_row(
    capture_of: Callable[..., Captured], tmp_path: Path
) -> None:
    captured = capture_of(
        answering(tmp_path, [thread(1, "other"), thread(41, "walk", "main")]), [seen(40, 41)]
    )
    assert captured.fire() == []
    (row,) = captured.wait()
    assert (row["tid"], row["cgroup"], row["python_stack"]) == (
        41,
        "/told",
        "walk (train.py:1);main (train.py:2)",
    )
    assert captured.collect() == []


def test_a_dump_of_900_kilobytes_is_read_whole(
    capture_of: Callable[..., Captured], tmp_path: Path
) -> None:
    dump = [*(thread(number, "waiting" * 10) for number in range(1000, 7500)), thread(40, "walk")]
    assert 900_000 < len(json.dumps(dump)) < task_capture._PY_SPY_BYTES
    captured = capture_of(answering(tmp_path, dump), [seen(40)])
    assert captured.fire() == []
    assert captured.wait()[0]["python_stack"] == "walk (train.py:1)"


@pytest.mark.parametrize(
    "py_spy", ["echo 'Error: Failed to find python version'", "exit 1", "printf '\\377\\000'"]
)
def test_garbage_gives_a_row_without_a_stack(
    capture_of: Callable[..., Captured], py_spy: str
) -> None:
    captured = capture_of(py_spy, [seen(40)])
    assert captured.fire() == []
    (row,) = captured.wait()
    assert (row["pid"], row["python_stack"]) == (40, None)


def test_a_worker_that_renamed_itself_is_known_by_what_it_runs(
    capture_of: Callable[..., Captured], tmp_path: Path
) -> None:
    found = TaskDescription("ray::worker", executable="/usr/bin/python3.11")
    captured = capture_of(
        answering(tmp_path, [thread(40, "train")]), [seen(40, comm="ray::worker")], found
    )
    assert captured.fire() == []
    assert captured.wait()[0]["python_stack"] == "train (train.py:1)"


def test_one_that_hangs_is_killed_after_its_time_and_its_row_comes_without_a_stack(
    capture_of: Callable[..., Captured], children: list[Any]
) -> None:
    captured = capture_of(HANG, [seen(40)])
    assert captured.fire() == []
    captured.now_s += 1.9
    assert captured.collect() == []
    captured.now_s += 0.2
    (row,) = captured.collect()
    assert (row["pid"], row["python_stack"]) == (40, None)
    assert children[0].wait(20) == -signal.SIGKILL


def test_no_more_than_two_run_at_once_and_those_that_cannot_be_killed_count(
    capture_of: Callable[..., Captured], children: list[Any]
) -> None:
    captured = capture_of(HANG, [seen(pid) for pid in (40, 50, 60)])
    assert [row["pid"] for row in captured.fire()] == [60], "its row comes at once, without a stack"
    for child in children:
        child.kill = lambda: None  # it waits for a disk: a signal does nothing
    captured.now_s += 3
    assert [row["pid"] for row in captured.collect()] == [40, 50]
    assert [row["pid"] for row in captured.fire()] == [40, 50, 60]
    assert len(children) == 2
    children[0].send_signal(signal.SIGKILL)
    children[0].wait(20)
    captured.collect()
    assert [row["pid"] for row in captured.fire()] == [50, 60], (
        "one has gone, and makes room for one"
    )


def test_stacks_that_are_refused_are_one_gap(
    capture_of: Callable[..., Captured], monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = capture_of(HANG, [], TaskDescription("dd", file="/mnt/dead"))
    blocked = [BlockedTask(7, "dd", 1, ("folio_wait_bit_common", "__x64_sys_read"), 3, 9)]
    monkeypatch.setattr(task_capture, "read_blocked_tasks", lambda _root, **_how: blocked)
    assert [(row["syscall"], row["stack"]) for row in captured.fire(BLOCKED)] == [
        ("read", "folio_wait_bit_common;__x64_sys_read")
    ]
    assert captured.take_gaps() == []
    blocked[:] = [BlockedTask(7, "dd", 1, None, 3, 9)]
    for trigger in (BLOCKED, HUNG):
        assert [
            (row["pid"], row["syscall"], row["stack"], row["file"])
            for row in captured.fire(trigger)
        ] == [(7, None, None, "/mnt/dead")]
    (gap,) = captured.take_gaps()
    assert (gap.table, gap.from_ns, "CAP_SYS_ADMIN" in gap.cause) == ("tasks", 17, True)
    captured.fire(BLOCKED)
    assert captured.take_gaps() == []


def test_the_end_waits_for_no_answer_and_leaves_nobody_behind(
    capture_of: Callable[..., Captured], children: list[Any]
) -> None:
    captured = capture_of(HANG, [seen(40)])
    captured.fire()
    assert [(row["pid"], row["python_stack"]) for row in captured.close()] == [(40, None)]
    (child,) = children
    assert child.returncode == -signal.SIGKILL
