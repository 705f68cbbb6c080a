"""The native core: who a sample belongs to, through forks, execs, exits and records that come late
or not at all.
"""

import struct

import pytest
from tests.drawn_profile import (
    KSYMBOL,
    LOST,
    SAMPLE,
    DrawnProfile,
    DrawnRing,
    drain,
    pack_record,
    trailer,
)

from necroscope.profile.core import QuestionKind


def questions_of(profile: DrawnProfile) -> list[tuple[str, int]]:
    return [(QuestionKind(question.kind).name, question.pid) for question in profile.asked]


def test_a_process_that_is_older_than_the_profile_is_asked_about_once(
    profile: DrawnProfile,
) -> None:
    profile.sample(1, 10, "main")
    profile.turn()
    assert questions_of(profile) == [("NAME", 10), ("CGROUP", 10), ("MAPPINGS", 10), ("BLOCK", 10)]
    profile.asked.clear()
    profile.sample(2, 10, "main")
    profile.turn()
    assert not profile.asked


def test_exec_replaces_the_image_and_its_mappings_need_no_question(profile: DrawnProfile) -> None:
    profile.sample(1, 20, "main")
    profile.turn()
    profile.asked.clear()
    profile.sample(2, 20, "main")
    profile.execs(3, 20, "gzip")
    profile.sample(4, 20, "deflate")
    profile.sample_words(5, 20, [profile.address("/bin/sh", "main")])
    assert profile.turn() == ["2 cpu0 sh/20: main", "4 cpu0 gzip/20: deflate", "5 cpu0 gzip/20: ?"]
    assert set(questions_of(profile)) == {("CGROUP", 20), ("BLOCK", 20)}


def test_a_child_has_its_parents_mappings_until_it_maps(profile: DrawnProfile) -> None:
    profile.sample(1, 20, "main")
    profile.turn()
    profile.asked.clear()
    profile.fork(2, 30, 20)
    profile.names[30] = "sh"
    profile.sample(3, 30, "main")
    profile.maps(4, 30, "/lib/plugin.so")
    profile.sample(5, 30, "main plugin.so:run")
    profile.sample(6, 20, "plugin.so:run")
    assert profile.turn() == ["3 cpu0 sh/30: main", "5 cpu0 sh/30: main run", "6 cpu0 sh/20: ?"]
    assert ("MAPPINGS", 30) not in questions_of(profile)
    assert ("NAME", 30) not in questions_of(profile)


def test_a_mapping_lies_over_an_older_one(profile: DrawnProfile) -> None:
    profile.execs(1, 20, "sh")
    start = profile.file_start("/bin/sh")
    profile.address("/bin/sh", "main"), profile.address("/bin/sh", "loop")
    profile.maps(2, 20, "/lib/hot.so", start, 0x100)
    profile.address("/lib/hot.so", "patched")
    profile.sample_words(3, 20, [start + 0x80])
    profile.sample_words(4, 20, [start + 0x180])
    assert profile.turn() == ["3 cpu0 sh/20: patched", "4 cpu0 sh/20: loop"]


def test_a_sample_that_comes_after_the_exit_still_has_its_process(profile: DrawnProfile) -> None:
    profile.execs(1, 30, "short")
    profile.sample(2, 30, "main")
    profile.exit(3, 30)
    profile.sample(4, 30, "main")
    assert profile.turn() == ["2 cpu0 short/30: main", "4 cpu0 short/30: main"]
    profile.sample(5, 30, "main")  # from another core's ring
    assert profile.turn() == ["5 cpu0 short/30: main"]
    assert profile.core.view.processes == 0


def test_a_number_that_is_used_again_is_another_process(profile: DrawnProfile) -> None:
    profile.execs(1, 30, "first")
    profile.sample(2, 30, "main")
    profile.exit(3, 30)
    profile.turn()
    profile.fork(4, 30, 20)
    profile.execs(5, 30, "second")
    profile.turn()
    profile.turn()
    profile.sample(6, 30, "run")
    assert profile.turn() == ["6 cpu0 second/30: run"]


def test_threads_have_names_of_their_own(profile: DrawnProfile) -> None:
    profile.names[11] = "worker"
    profile.sample(1, 10, "main", tid=11)
    profile.sample(2, 10, "main")
    assert profile.turn() == ["1 cpu0 worker/11: main", "2 cpu0 nginx/10: main"]


def test_records_of_all_rings_are_put_in_order(profile: DrawnProfile) -> None:
    profile.sample(0, 10, "main")
    profile.turn()
    profile.is_feeding = False
    rings = [DrawnRing(size=65536, cpu=number % 448) for number in range(2 * 448)]
    for time in range(1, 2000):
        rings[time * 31 % 448].write(profile.sample(time, 10, "main"))
    rings[448 + 7].write(profile.execs(2000, 10, "other"))
    rings[3].write(profile.sample(2001, 10, "run"))
    drain(profile.core, *rings)
    rows = profile.turn()
    assert rows[:2] == ["1 cpu31 nginx/10: main", "2 cpu62 nginx/10: main"]
    assert rows[-1] == "2001 cpu3 other/10: run"
    assert [int(row.split()[0]) for row in rows] == [*range(1, 2000), 2001]
    assert all(ring.tail == ring.head for ring in rings)


def test_what_comes_after_the_end_of_the_turn_waits(profile: DrawnProfile) -> None:
    for time in (30, 10, 20):
        profile.sample(time, 10, "main")
    assert profile.turn(until=20) == ["10 cpu0 nginx/10: main", "20 cpu0 nginx/10: main"]
    profile.sample(25, 10, "main")
    assert profile.turn() == ["25 cpu0 nginx/10: main", "30 cpu0 nginx/10: main"]
    assert profile.core.view.queued_bytes == 0


@pytest.mark.parametrize("before", range(8, 120, 8))
def test_a_record_goes_on_at_the_start_of_its_ring(profile: DrawnProfile, before: int) -> None:
    """`before` bytes of it are left at the end."""
    profile.is_feeding = False
    ring = DrawnRing(size=1024, cpu=2, tail=(1 << 40) - before)
    for time in range(1, 6):
        ring.write(profile.sample(time, 10, "main serve > vfs_read"))
    drain(profile.core, ring)
    assert [row.split()[0] for row in profile.turn()] == ["1", "2", "3", "4", "5"]
    assert ring.tail == ring.head


def test_a_head_that_cannot_be_is_not_followed(profile: DrawnProfile) -> None:
    ring = DrawnRing(size=1024)
    ring.memory[ring.HEAD // 8] = 1 << 50
    drain(profile.core, ring)
    assert ring.tail == 1 << 50
    assert profile.turn() == []


def test_types_that_are_not_known_are_passed_over_and_malformed_samples_counted(
    profile: DrawnProfile,
) -> None:
    profile.feed(pack_record(63, bytes(16)))
    profile.feed(pack_record(1000, bytes(16)))
    profile.feed(pack_record(SAMPLE, bytes(8)))
    profile.feed(
        pack_record(SAMPLE, struct.pack("<QiiQIIQ", 0, 10, 10, 1, 0, 0, 99))
    )  # a chain longer than its record
    profile.sample(2, 10, "main")
    assert profile.turn() == ["2 cpu0 nginx/10: main"]
    assert profile.core.view.malformed == 2


def test_a_feed_ends_before_what_is_not_a_whole_record(profile: DrawnProfile) -> None:
    profile.is_feeding = False
    sample = profile.sample(1, 10, "main")
    assert profile.core.feed(sample + sample[:40]) == len(sample)
    assert profile.core.feed(struct.pack("<IHH", 2, 0, 0) + bytes(64)) == 0
    assert profile.core.feed(sample + pack_record(81, bytes(8))) == len(sample)


def test_what_is_not_about_stacks_is_passed_on_in_order(profile: DrawnProfile) -> None:
    lost = profile.feed(pack_record(LOST, struct.pack("<QQ", 1, 42) + trailer(0, 0, 9, cpu=5)))
    symbol = profile.feed(
        pack_record(
            KSYMBOL,
            struct.pack("<QIHH", 0xFFFF_0000, 64, 1, 0) + bytes(8) + trailer(0, 0, 8, cpu=1),
        )
    )
    profile.core.replay(1 << 62)
    assert [(one.time_ns, one.cpu, one.record) for one in profile.core.passed_on()] == [
        (8, 1, symbol),
        (9, 5, lost),
    ]


def test_after_records_were_lost_everything_is_asked_again(profile: DrawnProfile) -> None:
    profile.sample(1, 10, "main")
    profile.turn()
    profile.core.forget_tasks()
    profile.asked.clear()
    profile.names[10] = "renamed"
    profile.mapped[10].append(profile.mapping("/bin/renamed"))
    profile.sample(2, 10, "main")
    assert profile.turn() == ["2 cpu0 renamed/10: main"]
    assert questions_of(profile)[:3] == [("NAME", 10), ("CGROUP", 10), ("MAPPINGS", 10)]


def test_a_time_that_overflows_is_the_last_one_there_is(profile: DrawnProfile) -> None:
    profile.sample((1 << 63) - 1, 10, "main")
    profile.core.replay((1 << 64) - 1, offset_ns=1 << 60)
    profile.core.finish()
    assert profile.core.column("time", 8) == struct.pack("<q", (1 << 62) - 1)
