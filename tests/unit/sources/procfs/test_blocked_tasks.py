"""Programs in state D, and where they wait."""

import errno
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from necroscope.sources.procfs import blocked_tasks
from necroscope.sources.procfs.blocked_tasks import (
    BlockedTask,
    parse_first_argument,
    parse_stack,
    read_blocked_tasks,
)

# Linux 6.18: a reader of a FUSE mount whose server does not answer.
STACK = b"""[<0>] folio_wait_bit_common+0x13d/0x330
[<0>] filemap_update_page+0x2a6/0x310
[<0>] filemap_read+0x2f5/0x390
[<0>] fuse_file_read_iter+0x12f/0x1a0
[<0>] vfs_read+0x261/0x390
[<0>] __x64_sys_pread64+0x98/0xd0
[<0>] do_syscall_64+0x8d/0xfa0
[<0>] entry_SYSCALL_64_after_hwframe+0x76/0x7e
"""
PF_KTHREAD = 0x00200000


def process(
    root: Path, pid: int, comm: str, state: str = "D", flags: int = 0x400100, cpu: int = 1
) -> Path:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    fields = [state, "1", "1", "1", "0", "-1", str(flags), *["0"] * 29, str(cpu), *["0"] * 12]
    (folder / "stat").write_text(f"{pid} ({comm}) {' '.join(fields)}\n")
    return folder


def test_a_program_that_stands_is_reported_with_where_it_waits(tmp_path):
    folder = process(tmp_path, 77, "data) (loader")
    (folder / "stack").write_bytes(STACK)
    (folder / "syscall").write_text("17 0x3 0x7f52a0 0x10000 0x0 0x0 0x0 0x7ffd 0x7f52\n")
    (folder / "schedstat").write_text("81219282 1229 371\n")
    process(tmp_path, 78, "runs", state="R")
    process(tmp_path, 79, "sleeps", state="S")
    process(tmp_path, 80, "jbd2/vda-8", flags=PF_KTHREAD)
    (task,) = read_blocked_tasks(tmp_path)
    assert (task.pid, task.comm, task.cpu, task.first_argument, task.runs) == (
        77,
        "data) (loader",
        1,
        3,
        371,
    )
    assert task.functions[0] == "folio_wait_bit_common"
    assert task.functions[5] == "__x64_sys_pread64"


def test_what_may_not_be_asked_or_has_gone_is_left_out(tmp_path):
    process(tmp_path, 77, "loader")
    (tmp_path / "proc/78").mkdir()
    (tmp_path / "proc/79").mkdir()
    (tmp_path / "proc/79/stat").write_text("79 (cut")
    assert read_blocked_tasks(tmp_path) == [BlockedTask(77, "loader", 1, (), None, None)]


def test_a_stack_that_is_refused_is_told_apart_from_one_that_is_gone(tmp_path, monkeypatch):
    def read(path):
        if path.endswith("/stack"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return Path(path).read_bytes()

    folder = process(tmp_path, 77, "loader")
    (folder / "syscall").write_text("17 0x3 0x7f52a0\n")
    monkeypatch.setattr(blocked_tasks, "_read", read)
    assert read_blocked_tasks(tmp_path) == [BlockedTask(77, "loader", 1, None, 3, None)]


@pytest.mark.kernel
def test_the_kernel_refuses_its_stack_to_who_has_not_the_capability():
    code = (
        "import os; from necroscope.sources.procfs.blocked_tasks import _functions, file_reader;"
        " os.setgid(65534); os.setuid(65534);from pathlib import Path; print(_functions(file_reader(Path('/')), os.getpid()))"
    )
    if os.geteuid() != 0 or not Path("/proc/self/stack").exists():
        pytest.skip("needs root, to give its rights away, and CONFIG_STACKTRACE")
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "None\n"
    )


def test_as_many_as_help_are_reported_and_no_longer_than_helps(tmp_path):
    for pid in range(100, 150):
        process(tmp_path, pid, "loader")
    assert len(read_blocked_tasks(tmp_path)) == 16
    seconds = itertools.count()
    assert len(read_blocked_tasks(tmp_path, lambda: next(seconds) * 0.15)) == 1


def test_a_task_that_is_in_no_system_call_has_no_argument():
    assert parse_first_argument(b"running\n") is None
    assert parse_first_argument(b"-1 0x7ffd 0x7f52\n") is None
    assert parse_first_argument(b"") is None


def test_an_empty_stack_is_no_functions():
    assert parse_stack(b"") == ()
    assert parse_stack(b"[<0>] \n") == ()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="58 is vfork on x86-64")
def test_who_waits_for_a_child_of_its_own_hides_nobody(tmp_path):
    for pid in range(100, 150):
        process(tmp_path, pid, "vforker")
        (tmp_path / f"proc/{pid}/syscall").write_text("58 0x0 0x0 0x0 0x0 0x0 0x0 0x7f 0x40")
    process(tmp_path, 999, "victim")
    assert [task.comm for task in read_blocked_tasks(tmp_path)] == ["victim"]
