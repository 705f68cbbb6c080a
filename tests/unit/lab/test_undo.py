"""Taking acts back: in the opposite order, as often as one likes, and without hiding what
failed.
"""

import ctypes
import os
import subprocess
from pathlib import Path

from necroscope.lab.ledger import ActLedger
from necroscope.lab.stage import Stage
from necroscope.lab.undo import undo_all


def test_files_come_back_and_trees_go(tmp_path: Path) -> None:
    tree, setting = tmp_path / "scratch", tmp_path / "sysctl"
    (tree / "below").mkdir(parents=True)
    setting.write_text("new")
    with ActLedger.make(tmp_path / "state") as ledger:
        ledger.write("tree", {"path": str(tree)})
        ledger.write("file", {"path": str(setting), "old": "old"})
        assert undo_all(ledger) == []
        assert not ledger.directory.exists()
    assert not tree.exists()
    assert setting.read_text() == "old"


def test_the_last_act_is_undone_first(tmp_path: Path) -> None:
    setting = tmp_path / "sysctl"
    setting.write_text("3")
    with ActLedger.make(tmp_path / "state") as ledger:
        ledger.write("file", {"path": str(setting), "old": "1"})
        ledger.write("file", {"path": str(setting), "old": "2"})
        undo_all(ledger)
    assert setting.read_text() == "1"


def test_what_was_never_done_is_undone_in_peace(tmp_path: Path) -> None:
    with ActLedger.make(tmp_path / "state") as ledger:
        ledger.write("tree", {"path": str(tmp_path / "no")})
        ledger.write("file", {"path": str(tmp_path / "no"), "old": "1"})
        ledger.write("mount", {"path": str(tmp_path / "no")})
        ledger.write("cgroup", {"directories": [str(tmp_path / "no")]})
        ledger.write("netns", {"name": "necroscope-no-such"})
        ledger.write("containers", {"podman": ["false"], "root": str(tmp_path / "no")})
        assert undo_all(ledger) == []
    assert not (tmp_path / "no").exists()


def test_a_failure_is_reported_and_the_others_are_undone_and_the_ledger_stays(
    tmp_path: Path,
) -> None:
    tree = tmp_path / "scratch"
    tree.mkdir()
    with ActLedger.make(tmp_path / "state") as ledger:
        ledger.write("tree", {"path": str(tree)})
        ledger.write("file", {"path": str(tmp_path), "old": "a directory takes no text"})
        ledger.write("no such kind", {})
        assert len(undo_all(ledger)) == 2
        assert ledger.acts()
    assert not tree.exists()


def test_a_file_that_marks_the_chosen_word_gets_that_word_back(tmp_path: Path) -> None:
    choice = tmp_path / "enabled"
    choice.write_text("always [madvise] never\n")
    with ActLedger.make(tmp_path / "state") as ledger:
        Stage(ledger, 0, 5, 1, tmp_path).set_file(str(choice), "always")
        assert choice.read_text() == "always"
        undo_all(ledger)
    assert choice.read_text() == "madvise"


def test_a_task_gets_its_nice_value_and_cores_back(tmp_path: Path) -> None:
    task = subprocess.Popen(["sleep", "60"])
    try:
        with ActLedger.make(tmp_path / "state") as ledger:
            cpus = sorted(os.sched_getaffinity(task.pid))
            ledger.write("task", {"pid": task.pid, "comm": "sleep", "nice": 3, "cpus": cpus})
            ledger.write("task", {"pid": task.pid, "comm": "another", "nice": 9, "cpus": cpus})
            os.sched_setaffinity(task.pid, {cpus[0]})
            assert undo_all(ledger) == []
        assert os.getpriority(os.PRIO_PROCESS, task.pid) == 3
        assert sorted(os.sched_getaffinity(task.pid)) == cpus
    finally:
        task.kill()
        task.wait()


def test_semaphores_of_the_lab_go_and_those_of_others_stay(tmp_path: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    first = 0x20000000 + os.getpid()
    own, other = (libc.semget(key, 1, 0o1600) for key in (first + 1, first + 2))
    try:
        with ActLedger.make(tmp_path / "state") as ledger:
            ledger.write("semaphores", {"first_key": first, "count": 2})
            assert undo_all(ledger) == []
        left = [line.split()[1] for line in Path("/proc/sysvipc/sem").read_text().splitlines()]
        assert str(own) not in left
        assert str(other) in left
    finally:
        libc.semctl(other, 0, 0)
