"""The native core: what one cgroup does to it costs that cgroup its names, and nobody else
theirs.
"""

import random
from collections.abc import Callable

import pytest
from tests.drawn_profile import USER_MARK, DrawnProfile

from necroscope.profile.core import CoreLimits

VICTIM, HOSTILE = 10, 20
VICTIMS_ROW = "nginx/10: main serve > do_syscall_64 vfs_read"
TIGHT = CoreLimits(64 << 20, 4 << 20, tenant_stacks=5_000, tenant_unnamed=500, most_stacks=100_000)


@pytest.fixture
def profile() -> DrawnProfile:
    drawn = DrawnProfile(TIGHT)
    drawn.runs(VICTIM, "nginx", cgroup=0)
    drawn.runs(HOSTILE, "miner", cgroup=1)
    return drawn


def rows_of(profile: DrawnProfile, time: int) -> list[str]:
    """The victim's, of a turn in which it runs after everybody else."""
    profile.sample(time, VICTIM, "main serve > do_syscall_64 vfs_read")
    return [row.partition(" cpu0 ")[2] for row in profile.turn() if "nginx" in row]


def bounded(profile: DrawnProfile) -> set[int]:
    return {cgroup for cgroup, _ in profile.core.take_bounded()}


def many_mappings(profile: DrawnProfile) -> None:
    """One process with 62,000 mappings, near what the kernel allows, and 40 with more than the core
    keeps of one.
    """
    for pid in range(100, 140):
        profile.names[pid], profile.cgroups[pid] = "miner", 1
        profile.mapped[pid] = [profile.mapping("/bin/miner")] if pid % 2 else []
        profile.sample(pid, pid, "main")
    profile.turn()
    for pid in range(100, 140):
        for at in range(62_000 if pid == 100 else 5_000):
            profile.maps(200, pid, "/bin/miner", 0x1_0000_0000 + at * 0x2000, 0x1000, inode=at % 3)
        profile.sample_words(300, pid, [USER_MARK, 0x1_0000_0000 + 4_999 * 0x2000])
        profile.turn()


def forged_addresses(profile: DrawnProfile) -> None:
    """A frame pointer that leads to addresses of the program's own choice: always other ones, all
    in code.
    """
    chosen = random.Random(7)
    start = profile.file_start("/bin/miner")
    profile.mapped[HOSTILE] = [profile.mapping("/bin/miner", start, 1 << 32)]
    for time in range(1, 421):
        profile.sample_words(
            time, HOSTILE, [USER_MARK, *(start + chosen.randrange(1 << 32) for _ in range(120))]
        )
        if time % 21 == 0:
            profile.turn()


def many_files(profile: DrawnProfile) -> None:
    profile.execs(1, HOSTILE, "miner")
    for at in range(70_000):
        profile.maps(2, HOSTILE, f"/tmp/{at}.so", 0x1_0000_0000, 0x1000, inode=at)
    profile.sample_words(3, HOSTILE, [USER_MARK, 0x1_0000_0800])
    profile.turn()


def many_threads(profile: DrawnProfile) -> None:
    """More than are kept for one tenant, all at once."""
    profile.sample(1, HOSTILE, "main")
    profile.turn()
    for tid in range(1000, 31_000):
        profile.thread(2, HOSTILE, tid)
    profile.turn()


def unknown_cgroups(profile: DrawnProfile) -> None:
    """They exit before anybody can look, so that nobody ever knows whose they were."""
    profile.cgroups[HOSTILE] = -1
    forged_addresses(profile)


@pytest.mark.parametrize(
    "hostile", [many_mappings, many_threads, forged_addresses, many_files, unknown_cgroups]
)
@pytest.mark.parametrize(
    "is_victim_known", [True, False], ids=["victim known before", "victim met after"]
)
def test_a_hostile_tenant_is_bounded_alone(
    profile: DrawnProfile, hostile: Callable[[DrawnProfile], None], is_victim_known: bool
) -> None:
    if is_victim_known:
        assert rows_of(profile, 1) == [VICTIMS_ROW]
    hostile(profile)
    assert bounded(profile) == {-1 if hostile is unknown_cgroups else 1}
    assert rows_of(profile, 10_000) == [VICTIMS_ROW]
    assert not bounded(profile)
    assert profile.core.view.used_bytes < TIGHT.limit_bytes // 2


def test_a_tenant_that_starts_many_threads_costs_nobody_else_what_is_known_of_theirs(
    profile: DrawnProfile,
) -> None:
    rows_of(profile, 1)
    profile.asked.clear()
    many_threads(profile)
    profile.asked.clear()
    assert rows_of(profile, 3) == [VICTIMS_ROW]
    assert not profile.asked
    profile.sample(4, HOSTILE, "main", tid=30_999)
    assert profile.turn() == ["4 cpu0 miner/30999: main"]
    assert {question.pid for question in profile.asked} == {HOSTILE}


def test_who_touches_a_shared_file_first_without_room_does_not_make_it_nameless(
    profile: DrawnProfile,
) -> None:
    forged_addresses(profile)
    profile.sample(1000, HOSTILE, "libc.so:read")
    profile.sample(1001, VICTIM, "main libc.so:read")
    assert profile.turn()[-1] == "1001 cpu0 nginx/10: main read"


def test_a_new_segment_is_a_new_chance(profile: DrawnProfile) -> None:
    forged_addresses(profile)
    profile.core.start_segment(100)
    profile.core.forget_blocks()
    profile.sample(1000, HOSTILE, "main")
    assert profile.turn() == ["1000 cpu0 miner/20: main"]


def test_files_that_nobody_has_mapped_any_more_are_forgotten(profile: DrawnProfile) -> None:
    many_files(profile)
    assert rows_of(profile, 10) == [VICTIMS_ROW]
    assert profile.core.start_segment(1_000_000) is True
    profile.asked.clear()
    assert rows_of(profile, 11) == [VICTIMS_ROW]
    assert profile.asked  # modules have other numbers, and their functions are asked for again
    profile.execs(12, HOSTILE, "miner")
    profile.sample(13, HOSTILE, "main")
    assert profile.turn() == ["13 cpu0 miner/20: main"]
    with pytest.raises(IndexError):
        profile.core.module(9)


def test_tasks_are_asked_for_again_after_a_record_of_theirs_was_refused() -> None:
    profile = DrawnProfile(TIGHT._replace(limit_bytes=1 << 20))
    profile.runs(VICTIM, "nginx", cgroup=0)
    profile.sample(1, VICTIM, "main serve")
    profile.turn()
    for time in range(2, 20_000):
        profile.sample(time, VICTIM, "main serve")
    profile.execs(20_000, VICTIM, "perl")  # in a queue that is full
    profile.turn()
    profile.runs(VICTIM, "perl", cgroup=0)
    profile.mapped[VICTIM] = [profile.mapping("/bin/perl")]
    profile.sample(20_001, VICTIM, "main run")
    assert profile.turn() == ["20001 cpu0 perl/10: main run"]


def test_a_burst_beyond_the_account_is_refused_in_part_and_then_forgotten() -> None:
    """A recorder that was stopped for a while finds its rings full: that must not cost it the rows
    of all time to come.
    """
    profile = DrawnProfile(TIGHT._replace(limit_bytes=1 << 20))
    profile.runs(VICTIM, "nginx", cgroup=0)
    for time in range(1, 20_000):
        profile.sample(time, VICTIM, "main serve")
    rows = profile.turn()
    view = profile.core.view
    assert rows[0] == "1 cpu0 nginx/10: main serve"
    assert len(rows) > 1000
    assert view.refused + len(rows) == 19_999
    assert view.used_bytes <= view.limit_bytes
    refused = view.refused
    for time in range(20_000, 20_100):
        profile.sample(time, VICTIM, "main serve")
        assert profile.turn() == [f"{time} cpu0 nginx/10: main serve"]
    assert view.refused == refused


def test_a_process_is_charged_to_its_cgroup_from_its_first_turn_on() -> None:
    """Who is met for the first time has no cgroup yet; all of them together would soon be more than
    one tenant may have.
    """
    profile = DrawnProfile(TIGHT._replace(tenant_bytes=16 << 10))
    for pid in range(1, 201):
        profile.runs(pid, "nginx", cgroup=pid)
        profile.sample(pid, pid, "main libc.so:read")
        assert profile.turn() == [f"{pid} cpu0 nginx/{pid}: main read"]
