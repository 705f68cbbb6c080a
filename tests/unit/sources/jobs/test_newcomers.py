"""Who is looked at next: users in turns, whatever one of them does."""

import random
from pathlib import Path

import pytest

from necroscope.model.units import NS_PER_S
from necroscope.sources.jobs import newcomers as newcomers_module
from necroscope.sources.jobs.newcomers import READ_AT_ONCE, Newcomers, in_turns, real_user

LATER_NS = 3600 * NS_PER_S
VICTIM, STORM = 1000, 65534


def add(root: Path, pid: int, uid: int, started_ticks: int = 100) -> None:
    folder = root / str(pid)
    folder.mkdir()
    fields = ["S", "1", *["0"] * 17, str(started_ticks), *["0"] * 30]
    (folder / "stat").write_text(f"{pid} (a job) {' '.join(fields)}\n")
    (folder / "status").write_text(f"Name:\ta job\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")


def test_a_storm_of_one_user_does_not_keep_another_waiting(tmp_path: Path) -> None:
    for pid in range(1, 401):
        add(tmp_path, pid, STORM, started_ticks=pid)
    add(tmp_path, 5000, VICTIM, started_ticks=5000)
    newcomers = Newcomers(tmp_path)
    newcomers.look(LATER_NS)
    taken = newcomers.take(64)
    assert [one.pid for one in taken[:3]] == [1, 5000, 2], "each the oldest first"
    assert len(taken) == 64
    assert len(newcomers.waiting) == 401 - 64


def test_a_look_reads_a_bounded_part_by_lot_and_all_have_their_turn(tmp_path: Path) -> None:
    for pid in range(1, 1201):
        add(tmp_path, pid, STORM)
    newcomers = Newcomers(tmp_path, random.Random(1))
    newcomers.look(LATER_NS)
    assert (len(newcomers.waiting), newcomers.unread) == (READ_AT_ONCE, 1200 - READ_AT_ONCE)
    assert sorted(newcomers.waiting) != list(range(1, READ_AT_ONCE + 1))
    for _ in range(2):
        newcomers.look(LATER_NS)
    assert (len(newcomers.waiting), newcomers.unread) == (1200, 0)


def test_what_is_remembered_is_bounded_and_one_user_gives_way_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newcomers_module, "MOST_WAITING", 100)
    for pid in range(1, 401):
        add(tmp_path, pid, STORM)
    add(tmp_path, 5000, VICTIM, started_ticks=5000)
    newcomers = Newcomers(tmp_path)
    for _ in range(3):
        newcomers.look(LATER_NS)
        assert (len(newcomers.waiting), newcomers.unread) == (100, 301)
    assert 5000 in newcomers.waiting
    assert 5000 in [one.pid for one in newcomers.take(2)]


def test_who_is_gone_or_has_had_its_turn_is_not_looked_at_again(tmp_path: Path) -> None:
    for pid in (1, 2):
        add(tmp_path, pid, VICTIM)
    newcomers = Newcomers(tmp_path)
    newcomers.look(LATER_NS)
    assert [one.pid for one in newcomers.take(1)] == [1]
    (tmp_path / "2/stat").unlink()
    (tmp_path / "2/status").unlink()
    (tmp_path / "2").rmdir()
    newcomers.look(LATER_NS)
    assert newcomers.take(9) == []


def test_a_process_that_was_just_forked_waits(tmp_path: Path) -> None:
    add(tmp_path, 1, VICTIM)
    newcomers = Newcomers(tmp_path)
    newcomers.look(NS_PER_S)
    assert newcomers.take(9) == []
    newcomers.look(LATER_NS)
    assert len(newcomers.take(9)) == 1


@pytest.mark.parametrize(
    "status", [b"", b"Name:\tx\n", b"Name:\tx\nUid:\t", b"Name:\tx\nUid:\tmany\t1\n"]
)
def test_a_status_without_a_user_is_roots(tmp_path: Path, status: bytes) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/status").write_bytes(status)
    assert real_user(tmp_path, 7) == 0


def test_owners_take_turns() -> None:
    assert in_turns("aaabbc", lambda item: item, 5) == list("abcab")


def test_one_that_was_looked_at_too_early_is_looked_at_again_until_it_is_gone(
    tmp_path: Path,
) -> None:
    add(tmp_path, 1, VICTIM)
    newcomers = Newcomers(tmp_path)
    for _ in range(3):
        newcomers.look(LATER_NS)
        [one] = newcomers.take(64)
        newcomers.postpone(one)
    for file in (tmp_path / "1").iterdir():
        file.unlink()
    (tmp_path / "1").rmdir()
    newcomers.look(LATER_NS)
    assert newcomers.take(64) == []


def test_a_user_with_many_postponed_processes_takes_no_others_place(tmp_path: Path) -> None:
    for pid in range(1, 301):
        add(tmp_path, pid, STORM)
    add(tmp_path, 5000, VICTIM)
    newcomers = Newcomers(tmp_path)
    newcomers.look(LATER_NS)
    for one in newcomers.take(1000):
        newcomers.postpone(one)
    again = [one.pid for _ in range(10) for one in newcomers.take(0)]
    assert 5000 in again
    assert len(again) < 100
