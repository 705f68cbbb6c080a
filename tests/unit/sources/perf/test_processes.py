"""Who a task was at each moment: names, images and cgroups from the rings' records and from /proc."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from necroscope.perf_abi import records
from necroscope.sources.perf import processes as processes_module
from necroscope.sources.perf.processes import Processes


@pytest.fixture
def proc(tmp_path: Path) -> Callable[..., Path]:
    """Writes what /proc would say of a task."""

    def write(pid: int, comm: str | None = None, cgroup: str | None = None, tid: int | None = None) -> Path:
        directory = tmp_path / str(pid)
        task = directory / "task" / str(tid or pid)
        task.mkdir(parents=True, exist_ok=True)
        if comm is not None:
            (task / "comm").write_text(comm + "\n")
        if cgroup is not None:
            (directory / "cgroup").write_text(f"0::{cgroup}\n")
        return tmp_path

    return write


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path, {})


@pytest.fixture
def apply(processes: Processes) -> Callable[..., None]:
    def applied(*written: bytes) -> None:
        for record in written:
            kind, misc, _ = records.HEADER.unpack_from(record)
            processes.apply(kind, misc, record)

    return applied


def test_a_task_that_predates_us_is_named_from_proc_once(processes: Processes, proc: Any) -> None:
    proc(100, "postgres", "/db")
    assert (processes.comm(100, 100), processes.cgroup(100)) == ("postgres", "/db")
    proc(100, "renamed", "/moved")
    assert (processes.comm(100, 100), processes.cgroup(100)) == ("postgres", "/db")


def test_threads_have_names_of_their_own(processes: Processes, proc: Any, apply: Any, build: Any) -> None:
    proc(100, "main")
    apply(build.fork(1, pid=100, parent=100, tid=101), build.comm(2, 100, b"worker", tid=101))
    assert (processes.comm(100, 100), processes.comm(100, 101)) == ("main", "worker")


def test_a_child_is_called_as_its_parent_until_it_execs(processes: Processes, apply: Any, build: Any) -> None:
    apply(build.comm(1, 100, b"bash"), build.fork(2, pid=200, parent=100))
    assert processes.comm(200, 200) == "bash"
    apply(build.comm(3, 200, b"true", is_exec=True))
    assert (processes.comm(100, 100), processes.comm(200, 200)) == ("bash", "true")


def test_a_short_lived_task_is_named_until_the_drain_is_over(processes: Processes, apply: Any, build: Any) -> None:
    apply(build.comm(1, 100, b"bash"), build.fork(2, 200, 100), build.comm(3, 200, b"true", is_exec=True), build.exit(4, 200))
    assert processes.comm(200, 200) == "true"
    processes.forget_exited()
    assert processes.comm(200, 200) == ":200"


def test_an_exec_is_a_new_image(processes: Processes, apply: Any, build: Any) -> None:
    before = processes.space(100)
    assert not before.is_complete
    apply(build.comm(1, 100, b"new", is_exec=True), build.mmap2(2, 100, 0x1000, 0x1000, b"/bin/new"))
    assert processes.space(100) is not before
    assert processes.space(100).is_complete
    found = processes.space(100).find(0x1000)
    assert found is not None
    assert found.path == "/bin/new"


def test_a_rename_is_no_new_image(processes: Processes, apply: Any, build: Any) -> None:
    before = processes.space(100)
    apply(build.comm(1, 100, b"renamed"))
    assert processes.space(100) is before


def test_a_process_that_names_itself_may_have_been_moved_before(processes: Processes, proc: Any, apply: Any, build: Any) -> None:
    proc(200, "python", "/launcher")
    assert processes.cgroup(200) == "/launcher"
    proc(200, cgroup="/pod/worker")
    apply(build.comm(1, 200, b"worker"))
    assert processes.task(200, 200).cgroup == "/pod/worker"


def test_mappings_of_processes_nobody_sampled_are_not_kept(processes: Processes, apply: Any, build: Any) -> None:
    apply(build.mmap2(1, 100, 0x1000, 0x1000, b"/bin/x"))
    assert list(processes.spaces()) == []


def test_a_pid_used_again_within_a_drain_is_another_process(processes: Processes, proc: Any, apply: Any, build: Any) -> None:
    proc(200, "new", "/new")
    apply(build.comm(1, 200, b"old", is_exec=True), build.mmap2(2, 200, 0x1000, 0x1000, b"/bin/old"))
    assert processes.comm(200, 200) == "old"
    apply(build.exit(3, 200), build.fork(4, pid=200, parent=300))
    assert processes.comm(200, 200) == "new"
    assert processes.cgroup(200) == "/new"
    assert processes.space(200).find(0x1000) is None


def test_a_pid_used_again_is_not_forgotten_with_its_first_owner(processes: Processes, apply: Any, build: Any) -> None:
    apply(build.comm(1, 100, b"bash", is_exec=True), build.exit(2, 200), build.fork(3, pid=200, parent=100))
    processes.forget_exited()
    assert processes.comm(200, 200) == "bash"
    assert processes.space(200).is_complete


def test_a_thread_that_execs_takes_its_leaders_place(processes: Processes, apply: Any, build: Any) -> None:
    apply(build.exit(1, 100, tid=100), build.comm(2, 100, b"image", tid=100, is_exec=True))
    processes.forget_exited()
    assert processes.comm(100, 100) == "image"
    assert processes.space(100).is_complete


def test_an_exited_thread_leaves_its_process_alone(processes: Processes, apply: Any, build: Any) -> None:
    apply(build.comm(1, 100, b"image", is_exec=True), build.fork(2, 100, 100, tid=101), build.exit(3, 100, tid=101))
    processes.forget_exited()
    assert processes.comm(100, 100) == "image"
    assert processes.space(100).is_complete


def test_a_task_gone_before_we_looked_is_called_by_its_number(processes: Processes) -> None:
    assert processes.comm(4711, 4712) == ":4712"
    assert processes.cgroup(4711) is None


def test_a_child_gone_before_we_looked_is_called_as_its_parent(processes: Processes, proc: Any, apply: Any, build: Any) -> None:
    proc(100, "forker")
    apply(build.fork(1, pid=200, parent=100), build.fork(2, pid=300, parent=4711))
    assert (processes.comm(200, 200), processes.comm(300, 300)) == ("forker", ":300")


def test_the_idle_task_and_one_that_left_the_pid_table_have_names(processes: Processes) -> None:
    assert (processes.comm(0, 0), processes.comm(-1, -1)) == ("swapper", "[exited]")
    assert processes.cgroup(-1) is None


def test_a_child_gone_before_we_looked_was_in_its_parents_cgroup(processes: Processes, proc: Any, apply: Any, build: Any) -> None:
    proc(100, "crashloop", "/pods/crashloop")
    apply(build.fork(1, pid=200, parent=100))
    assert processes.cgroup(200) == "/pods/crashloop"


def test_the_cgroup_of_a_parent_is_read_once_for_all_its_children(
    processes: Processes, proc: Any, apply: Any, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc(100, "crashloop", "/pods/crashloop")
    read = []
    monkeypatch.setattr(processes_module, "_read_bytes", lambda path: (read.append(path), Path(path).read_bytes())[1])
    for pid in range(200, 210):
        apply(build.fork(1, pid=pid, parent=100))
        assert processes.cgroup(pid) == "/pods/crashloop"
    assert len(read) == 11


def test_a_child_of_init_gone_before_we_looked_was_who_knows_where(
    processes: Processes, proc: Any, apply: Any, build: Any
) -> None:
    proc(1, "systemd", "/init.scope")
    apply(build.fork(1, pid=200, parent=1))
    assert processes.cgroup(200) is None


def test_seen_from_a_cgroup_namespace_paths_are_the_nodes(tmp_path: Path, proc: Any) -> None:
    proc(100, cgroup="/../../system.slice/x.service")
    processes = Processes(tmp_path, {b"": b"/machine.slice/recorder.scope"})
    processes.forget_all()
    assert processes.cgroup(100) == "/system.slice/x.service"


def test_an_exec_reads_the_cgroup_again(processes: Processes, proc: Any, apply: Any, build: Any) -> None:
    proc(100, "runc", "/runtime")
    assert processes.cgroup(100) == "/runtime"
    proc(100, cgroup="/pods/a")
    apply(build.comm(1, 100, b"app", is_exec=True))
    assert processes.cgroup(100) == "/pods/a"


def test_cgroups_are_read_again_when_forgotten(processes: Processes, proc: Any) -> None:
    proc(100, cgroup="/a")
    processes.cgroup(100)
    proc(100, cgroup="/b")
    processes.forget_cgroups()
    assert processes.cgroup(100) == "/b"


@pytest.mark.parametrize(
    ("raw", "shown"), [(b"\x1b[2J", "\\x1b[2J"), (b"\xff\xfe", "\\xff\\xfe"), (b"", "[empty]"), (b"a\nb", "a\\x0ab")]
)
def test_hostile_names_are_made_harmless(processes: Processes, apply: Any, build: Any, proc: Any, raw: bytes, shown: str) -> None:
    apply(build.comm(1, 100, raw))
    assert processes.comm(100, 100) == shown
    (proc(300, "") / "300/task/300/comm").write_bytes(raw + b"\n")
    assert processes.comm(300, 300) == shown


def test_too_many_tasks_start_the_cache_afresh(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, apply: Any, build: Any
) -> None:
    monkeypatch.setattr(processes_module, "_MOST_TASKS", 10)
    apply(*(build.comm(1, pid, b"storm", is_exec=True) for pid in range(100, 120)))
    processes.forget_exited()
    assert list(processes.spaces()) == []
    assert processes.comm(0, 0) == "swapper"


def test_a_user_who_maps_long_paths_without_end_is_bounded(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, apply: Any, build: Any
) -> None:
    monkeypatch.setattr(processes_module, "_MOST_MAPPED_BYTES", 100_000)
    apply(*(build.comm(1, pid, b"hog", is_exec=True) for pid in (100, 200)))
    for page in range(100):
        apply(build.mmap2(2, 100, page << 12, 4096, b"/" + b"x" * 4000))
    processes.forget_exited()
    assert list(processes.spaces()) == []


def test_mappings_of_those_who_exit_do_not_count(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, apply: Any, build: Any
) -> None:
    monkeypatch.setattr(processes_module, "_MOST_MAPPED_BYTES", 100_000)
    apply(build.comm(1, 50, b"stays", is_exec=True))
    for pid in range(100, 200):
        apply(
            build.comm(1, pid, b"storm", is_exec=True), build.mmap2(2, pid, 0x1000, 4096, b"/" + b"x" * 4000), build.exit(3, pid)
        )
    processes.forget_exited()
    assert processes.space(50).is_complete


def test_unknown_records_are_passed_over(processes: Processes) -> None:
    processes.apply(99, 0, struct.pack("<IHH", 99, 0, 8))
