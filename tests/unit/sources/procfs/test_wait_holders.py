"""Who has what a task waits for, from /proc as a directory of a test."""

from pathlib import Path

from necroscope.sources.procfs.wait_holders import WaitHolders, parse_locks

LOCKS = b"""1: FLOCK  ADVISORY  WRITE 71 08:01:1234 0 EOF
1: -> FLOCK  ADVISORY  WRITE 72 08:01:1234 0 EOF
2: OFDLCK ADVISORY  WRITE -1 08:01:99 0 EOF
2: -> POSIX  ADVISORY  WRITE 73 08:01:99 0 EOF
"""
SECOND = 10**9


def process(proc: Path, tid: int, comm: str, stack: str = "", pid: int | None = None) -> Path:
    folder = proc / str(tid)
    folder.mkdir(parents=True)
    (folder / "status").write_text(f"Name:\t{comm}\nTgid:\t{pid or tid}\n")
    (folder / "comm").write_bytes(comm.encode() + b"\n")
    (folder / "stack").write_text(stack)
    return folder


def test_the_holder_of_a_file_lock_is_found_with_where_it_is(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    process(proc, 71, "back\x1bup", "[<0>] do_signal_stop+0x1/0x2\n[<0>] get_signal+0x1/0x2\n")
    (proc / "locks").write_bytes(LOCKS)
    holder = WaitHolders(proc).find("file_lock", 72, None, SECOND)
    assert holder is not None
    assert (holder.pid, holder.comm) == (71, "back\\x1bup")
    assert holder.functions == ("do_signal_stop", "get_signal")


def test_a_lock_of_an_open_file_is_nobodys() -> None:
    assert parse_locks(LOCKS, 73) is None
    assert parse_locks(LOCKS, 74) is None
    assert parse_locks(b"torn: -> FLOCK\n1:", 72) is None


def test_a_short_wait_asks_nothing(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    process(proc, 71, "backup")
    (proc / "locks").write_bytes(LOCKS)
    assert WaitHolders(proc).find("file_lock", 72, None, SECOND // 10) is None


def test_the_number_in_a_lock_must_be_a_thread_of_the_same_program(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    process(proc, 70, "consul")
    process(proc, 75, "compactor", pid=70)
    (proc / "70/task/75").mkdir(parents=True)
    found = WaitHolders(proc).find("futex", 70, 75, SECOND)
    assert found is not None
    assert (found.tid, found.comm) == (75, "compactor")
    process(proc, 99, "other")
    assert WaitHolders(proc).find("futex", 70, 99, SECOND) is None


def test_a_thread_is_found_by_its_number_in_its_own_pid_namespace(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    process(proc, 75, "compactor", pid=70)
    thread = proc / "70/task/75"
    thread.mkdir(parents=True)
    (thread / "status").write_text("Name:\tcompactor\nNSpid:\t75\t6\n")
    found = WaitHolders(proc).find("futex", 70, 6, SECOND)
    assert found is not None
    assert found.tid == 75


def test_a_task_that_has_gone_is_not_named(tmp_path: Path) -> None:
    assert WaitHolders(tmp_path).find("blocked", 70, 71, SECOND) is None


def test_a_parent_of_another_user_did_not_choose_to_trace(tmp_path: Path) -> None:
    """PTRACE_TRACEME makes any parent the tracer, also process 1 of an orphan."""
    traced = process(tmp_path, 80, "liar") / "status"
    parent = process(tmp_path, 7, "daemon") / "status"
    traced.write_text("Tgid:\t80\nPPid:\t7\nTracerPid:\t7\nUid:\t99\t99\t99\t99\n")
    holders = WaitHolders(tmp_path)
    for uid, expected in ((0, None), (99, 7)):
        parent.write_text(f"Tgid:\t7\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        found = holders.find("stopped", 80, None, SECOND)
        assert (found.pid if found else None) == expected
    # One that attached itself chose to.
    traced.write_text("Tgid:\t80\nPPid:\t1\nTracerPid:\t7\nUid:\t99\t99\t99\t99\n")
    parent.write_text("Tgid:\t7\nUid:\t0\t0\t0\t0\n")
    assert holders.find("stopped", 80, None, SECOND) is not None


def test_the_family_of_a_process_is_its_parent_and_its_siblings(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    folder = process(proc, 71, "worker")
    (folder / "status").write_text("Name:\tworker\nTgid:\t71\nPPid:\t70\n")
    for thread, children in ((70, "71 72 "), (75, "73 ")):
        (proc / f"70/task/{thread}").mkdir(parents=True)
        (proc / f"70/task/{thread}/children").write_text(children)
    parent, family = WaitHolders(proc).family(71)
    assert parent == 70
    assert sorted(family) == [70, 71, 72, 73]


def test_orphans_are_no_family(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    folder = process(proc, 71, "worker")
    (folder / "status").write_text("Name:\tworker\nTgid:\t71\nPPid:\t1\n")
    assert WaitHolders(proc).family(71) == (0, [])
    assert WaitHolders(proc).family(99) == (0, [])


def test_of_several_children_none_is_the_one_that_is_waited_for(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    process(proc, 71, "flock")
    process(proc, 80, "backup")
    (proc / "71/task/71").mkdir(parents=True)
    children = proc / "71/task/71/children"
    children.write_text("80 ")
    child = WaitHolders(proc).only_child(71)
    assert child is not None
    assert (child.pid, child.comm) == (80, "backup")
    for text in ("80 81 ", ""):
        children.write_text(text)
        assert WaitHolders(proc).only_child(71) is None
