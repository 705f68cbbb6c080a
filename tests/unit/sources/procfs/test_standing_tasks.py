"""Waits from looks at /proc, where BPF cannot time them."""

import itertools
from pathlib import Path

from necroscope.model.reading import Moment
from necroscope.sources.procfs.standing_tasks import StandingTasks

SECOND = 10**9


def process(proc: Path, pid: int, state: str = "D") -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    numbers = " ".join(["0"] * 49)
    (folder / "stat").write_text(f"{pid} (reader) {state} {numbers}\n")
    (folder / "schedstat").write_text("100 200 3\n")
    (folder / "stack").write_text("[<0>] folio_wait_bit+0x1/0x2\n")


def look(tasks: StandingTasks, at_s: int) -> list[int]:
    """The pids that stood."""
    pid = 5
    return [int(row[pid]) for row in tasks.look(Moment(at_s * SECOND, at_s * SECOND))]


def test_a_process_that_did_not_move_between_two_looks_waited(tmp_path: Path) -> None:
    process(tmp_path, 70)
    process(tmp_path, 71, state="S")
    tasks = StandingTasks(tmp_path)
    assert look(tasks, 5) == []
    (row,) = tasks.look(Moment(10 * SECOND, 10 * SECOND))
    assert row[1:4] == (5 * SECOND, "blocked", True)
    (tmp_path / "70/schedstat").write_text("150 200 4\n")
    assert look(tasks, 15) == []


def test_many_processes_do_not_hide_those_behind_them(tmp_path: Path) -> None:
    """There is time for one process per look; each still has its turn, and is known by then."""
    for pid in (70, 71, 72):
        process(tmp_path, pid)
    clock = itertools.count(0, 0.15)
    tasks = StandingTasks(tmp_path, monotonic_s=lambda: next(clock))
    assert [look(tasks, 5 * number) for number in range(1, 7)] == [[], [], [], [70], [71], [72]]
