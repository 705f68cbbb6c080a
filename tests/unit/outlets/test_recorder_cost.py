"""Who holds a recording, and what that costs: from a drawn /proc, and of this very process."""

import fcntl
import os
from pathlib import Path

import pytest

from necroscope.outlets.recorder_cost import holder_of, parse_stat, read_cost
from necroscope.segment.lock import LOCK_FILE, RecordingLock

LOCKS = """1: POSIX  ADVISORY  WRITE 4000 fd:01:77 0 EOF
2: FLOCK  ADVISORY  WRITE 4711 fd:01:131090 0 EOF
2: -> FLOCK  ADVISORY  WRITE 4712 fd:01:131090 0 EOF
3: FLOCK  ADVISORY  WRITE 0 00:1f:88 0 EOF
4: FLOCK  ADVISORY  READ  5000 fd:01:99 0 EOF
"""
STAT = (
    "4711 (a) b (c) S 1 4711 4711 0 -1 4194560 5000 0 3 0 150 50 30 20 20 0 1 0 100 200000000 6000"
    " 18446744073709551615 0 0"
)


def test_the_holder_is_who_has_the_lock_not_who_waits_for_it() -> None:
    assert holder_of(LOCKS, 131090) == 4711
    assert holder_of(LOCKS, 77) is None
    assert holder_of(LOCKS, 88) is None
    assert holder_of(LOCKS, 99) is None


def test_time_of_ended_children_counts_and_names_may_hold_brackets() -> None:
    parent, seconds, resident_bytes = parse_stat(STAT)
    assert parent == 1
    assert seconds == 250 / os.sysconf("SC_CLK_TCK")
    assert resident_bytes == 6000 * os.sysconf("SC_PAGE_SIZE")


def draw(root: Path, lock: Path, *, pid: int = 4711) -> None:
    lock.write_text("4711\n")
    (root / "proc/4711/task/4711").mkdir(parents=True)
    (root / "proc/4712").mkdir()
    (root / "proc/locks").write_text(
        f"1: FLOCK  ADVISORY  WRITE {pid} fd:01:{lock.stat().st_ino} 0 EOF\n"
    )
    (root / "proc/4711/stat").write_text(STAT)
    (root / "proc/4712/stat").write_text(STAT.replace("S 1 ", "S 4711 "))
    (root / "proc/4711/task/4711/children").write_text("4712 ")


def test_the_lookup_process_counts_too(tmp_path: Path) -> None:
    draw(tmp_path, tmp_path / LOCK_FILE)
    cost = read_cost(tmp_path / LOCK_FILE, tmp_path)
    assert cost is not None
    assert cost.pid == 4711
    assert cost.cpu_seconds == 500 / os.sysconf("SC_CLK_TCK")
    (tmp_path / "proc/4711/task/4711/children").unlink()
    alone = read_cost(tmp_path / LOCK_FILE, tmp_path)
    assert alone is not None
    assert alone.cpu_seconds == 250 / os.sysconf("SC_CLK_TCK")


def test_the_seal_counts_which_another_thread_started(tmp_path: Path) -> None:
    draw(tmp_path, tmp_path / LOCK_FILE)
    (tmp_path / "proc/4713").mkdir()
    (tmp_path / "proc/4713/stat").write_text(STAT.replace("S 1 ", "S 4711 "))
    (tmp_path / "proc/4711/task/4714").mkdir()
    (tmp_path / "proc/4711/task/4714/children").write_text(
        "4713 4719 "
    )  # the last one has ended since
    (tmp_path / "proc/4711/task/4715").mkdir()
    cost = read_cost(tmp_path / LOCK_FILE, tmp_path)
    assert cost is not None
    assert cost.resident_bytes == 3 * 6000 * os.sysconf("SC_PAGE_SIZE")


def test_a_pid_that_does_not_hold_the_lock_is_somebody_else(tmp_path: Path) -> None:
    draw(tmp_path, tmp_path / LOCK_FILE, pid=4712)
    assert read_cost(tmp_path / LOCK_FILE, tmp_path) is None
    assert read_cost(tmp_path / "nowhere", tmp_path) is None


@pytest.mark.kernel
def test_this_kernel_tells_who_holds_a_recording(tmp_path: Path) -> None:
    with RecordingLock(tmp_path):
        cost = read_cost(tmp_path / LOCK_FILE)
        assert cost is not None
        assert cost.pid == os.getpid()
        assert cost.resident_bytes > 1 << 20
    assert read_cost(tmp_path / LOCK_FILE) is None
    with (tmp_path / LOCK_FILE).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert read_cost(tmp_path / LOCK_FILE) is None
