"""Records out of the rings' bytes: what is kept, what is dropped and counted, and their order."""

import os
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from necroscope.errors import PermissionMissing, SourceUnavailable
from necroscope.perf_abi import records
from necroscope.perf_abi.event_attr import FLAG_KSYMBOL, EventAttr
from necroscope.sources.perf import rings as rings_module
from necroscope.sources.perf.cgroup_ledger import CgroupLedger
from necroscope.sources.perf.ring import PAGE_BYTES
from necroscope.sources.perf.rings import TRACEPOINT, Drain, Rings, _ring_pages, _TaskRecords
from necroscope.sources.sysfs.cpus import parse as parse_cpus

LATE = 10**18


@pytest.fixture
def scan(build: Any, drain: Drain) -> Any:
    rings = Rings(97)
    rings.idle_addresses = {struct.pack("<Q", build.IDLE)}

    def scanned(*written: bytes, cpu: int = 3) -> Drain:
        tasks = _TaskRecords(LATE)
        rings._scan(b"".join(written), cpu, build.SAMPLING_ID, drain, tasks)
        drain.records += tasks.take()
        return drain

    return scanned


def test_a_sample_keeps_its_time_core_task_and_chain(scan: Any, build: Any) -> None:
    found = scan(build.sample(1000, pid=7, tid=8, kernel=[1, 2], user=[3]))
    assert found.records == [(1000, 3, records.SAMPLE, 7, 8, build.chain([1, 2], [3]), None)]


def test_a_sample_in_a_system_call_gives_its_first_argument(scan: Any, build: Any) -> None:
    chain = {"kernel": [5], "user": [3]}
    found = scan(build.sample(1, **chain, argument=0), build.sample(2, **chain, argument=12345), build.sample(3, **chain))
    assert [record[-1] for record in found.records] == [0, 12345, None]


def test_the_register_of_a_program_that_runs_its_own_code_is_no_argument(scan: Any, build: Any) -> None:
    assert [record[-1] for record in scan(build.sample(1, user=[3], argument=12345)).records] == [None]


def test_a_task_that_has_left_the_pid_table_has_number_minus_one(scan: Any, build: Any) -> None:
    (record,) = scan(build.sample(1, pid=-1, tid=-1, kernel=[5])).records
    assert record[3:5] == (-1, -1)


def test_an_idle_sample_is_dropped_and_counted(scan: Any, build: Any) -> None:
    found = scan(build.sample(1, pid=0, kernel=[build.IDLE, 9]), build.sample(2, pid=0, kernel=[build.IDLE]))
    assert found.records == []
    assert found.idle == 2


def test_interrupt_on_idle_core_is_work(scan: Any, build: Any) -> None:
    found = scan(build.sample(1, pid=0, kernel=[build.IDLE + 64, build.IDLE]))
    assert len(found.records) == 1
    assert found.idle == 0


def test_a_process_in_a_function_called_as_idle_is_work(scan: Any, build: Any) -> None:
    assert len(scan(build.sample(1, pid=1, kernel=[build.IDLE])).records) == 1


def test_a_sample_without_a_chain_is_kept(scan: Any, build: Any) -> None:
    (record,) = scan(build.sample(1)).records
    assert record[5] == b""


def test_lost_records_are_counted_by_core(scan: Any, build: Any) -> None:
    scan(build.lost(1, 5), build.sample(2), build.lost(3, 7))
    found = scan(build.lost(4, 1), cpu=9)
    assert found.lost == {3: 12, 9: 1}
    assert len(found.records) == 1


def test_throttling_is_counted_by_core(scan: Any, build: Any) -> None:
    assert scan(build.throttle(1), build.throttle(2)).throttled == {3: 2}


def test_a_tracepoints_raw_data_starts_after_its_size(scan: Any, build: Any) -> None:
    (record,) = scan(build.tracepoint(5, b"raw-data" * 3, pid=4)).records
    time_ns, cpu, kind, pid, _, raw, identifier = record
    assert (time_ns, cpu, kind, pid, identifier) == (5, 3, TRACEPOINT, 4, build.LEDGER_ID)
    assert raw.startswith(b"raw-data" * 3)


def test_other_records_keep_all_their_bytes_and_the_time_of_their_trailer(scan: Any, build: Any) -> None:
    comm = build.comm(42, 7, b"name")
    assert scan(comm).records == [(42, 3, records.COMM, 0, 0, comm, None)]


def test_a_record_too_short_for_a_time_is_skipped(scan: Any, build: Any) -> None:
    found = scan(build.record(99, b""), build.sample(1))
    assert len(found.records) == 1


@pytest.mark.parametrize("kind", [records.SAMPLE, records.LOST, records.THROTTLE, records.COMM, 99])
@pytest.mark.parametrize("size", [0, 4, 7])
def test_a_record_without_a_size_ends_the_drain_instead_of_looping(scan: Any, build: Any, kind: int, size: int) -> None:
    found = scan(build.sample(1), struct.pack("<IHH", kind, 0, size) + bytes(64))
    assert len(found.records) == 1


def test_whatever_is_cut_off_leaves_what_came_before(scan: Any, build: Any) -> None:
    whole = build.sample(1, kernel=[1])
    for torn in (
        build.sample(2, kernel=[1, 2, 3], argument=4),
        build.comm(3, 5, b"x"),
        build.lost(4, 1),
        build.tracepoint(5, b"r"),
    ):
        for length in range(len(torn)):
            drain = Drain()
            Rings(97)._scan(whole + torn[:length], 0, build.SAMPLING_ID, drain, _TaskRecords(LATE))
            assert len(drain.records) == 1
            assert not drain.lost


@pytest.mark.parametrize("size", range(8, 48, 8))
def test_a_sample_smaller_than_its_head_is_no_sample(scan: Any, build: Any, size: int) -> None:
    assert scan(struct.pack("<IHH", records.SAMPLE, 0, size) + bytes(80)).records == []


def test_a_chain_that_claims_to_be_longer_than_its_record_is_cut(scan: Any, build: Any) -> None:
    sample = bytearray(build.sample(1, kernel=[1, 2]))
    struct.pack_into("<Q", sample, 40, 1 << 60)
    (record,) = scan(bytes(sample), build.comm(2, 3, b"next")).records[:1]
    assert len(record[5]) == len(sample) - 48


def test_records_of_all_cores_come_in_the_order_of_time(rings: Any, build: Any) -> None:
    rings.write(0, build.sample(10), build.sample(30), build.sample(50))
    rings.write(1, build.sample(20), build.sample(40))
    drained = rings.drain(LATE)
    assert [(record[0], record[1]) for record in drained.records] == [(10, 0), (20, 1), (30, 0), (40, 1), (50, 0)]


def test_what_comes_while_the_rings_are_emptied_waits_for_the_next_drain(rings: Any, build: Any) -> None:
    # The exec is on a core emptied later; its fork came on a core that had been emptied before it.
    rings.write(1, build.comm(101, 7, b"child", is_exec=True))
    assert rings.drain(100).records == []
    rings.write(0, build.fork(100, 7, 6))
    assert [record[2] for record in rings.drain(200).records] == [records.FORK, records.COMM]
    assert rings.drain(300).records == []


def life(build: Any, pid: int, start_ns: int, *between: bytes) -> list[bytes]:
    """A shell (pid 6) starts a program, which exits."""
    begin = [build.fork(start_ns, pid, 6), build.comm(start_ns + 1, pid, b"true", is_exec=True)]
    begin.append(build.mmap2(start_ns + 2, pid, 0x400000, 0x1000, b"/bin/true"))
    return [*begin, *between, build.exit(start_ns + 9, pid)]


def kinds(rings: Any, until_ns: int = LATE) -> list[int]:
    return [record[2] for record in rings.drain(until_ns).records]


def test_records_of_a_process_that_came_and_went_unseen_are_passed_over(rings: Any, build: Any) -> None:
    rings.write(0, *life(build, 7, 10), *life(build, 8, 20), build.comm(30, 6, b"shell"))
    assert kinds(rings) == [records.COMM]


def test_a_process_that_was_seen_on_any_core_keeps_its_records(rings: Any, build: Any) -> None:
    rings.write(0, *life(build, 7, 10))
    rings.write(1, build.sample(15, pid=7))
    assert kinds(rings) == [records.FORK, records.COMM, records.MMAP2, records.SAMPLE, records.EXIT]


@pytest.mark.parametrize("what", ["child", "thread"])
def test_a_process_that_left_a_child_or_a_thread_keeps_its_records(rings: Any, build: Any, what: str) -> None:
    # The child goes by its parent's name, and a thread that execs takes the number of its leader.
    left = build.fork(15, 9, 7) if what == "child" else build.fork(15, 7, 7, tid=9)
    rings.write(0, *life(build, 7, 10, left))
    assert kinds(rings) == [records.FORK, records.COMM, records.MMAP2, records.FORK, records.EXIT]


def test_a_process_that_began_before_this_drain_keeps_its_exit(rings: Any, build: Any) -> None:
    rings.write(0, *life(build, 7, 10)[1:])
    assert kinds(rings) == [records.COMM, records.MMAP2, records.EXIT]


def test_a_process_that_still_lives_keeps_its_records(rings: Any, build: Any) -> None:
    rings.write(0, *life(build, 7, 10)[:-1])
    assert kinds(rings) == [records.FORK, records.COMM, records.MMAP2]


def test_of_a_process_that_ended_while_the_rings_are_emptied_a_sample_may_still_come(rings: Any, build: Any) -> None:
    rings.write(0, *life(build, 7, 10))
    assert kinds(rings, until_ns=15) == [records.FORK, records.COMM, records.MMAP2]
    rings.write(1, build.sample(16, pid=7))
    assert kinds(rings) == [records.SAMPLE, records.EXIT]


def test_a_sample_that_waited_for_this_drain_keeps_the_records_of_its_process(rings: Any, build: Any) -> None:
    rings.write(1, build.sample(15, pid=7))
    assert kinds(rings, until_ns=5) == []
    rings.write(0, *life(build, 7, 10))
    assert kinds(rings) == [records.FORK, records.COMM, records.MMAP2, records.SAMPLE, records.EXIT]


def test_a_number_given_twice_in_a_drain_may_belong_to_somebody_who_lives(rings: Any, build: Any) -> None:
    rings.write(0, *life(build, 7, 10), *life(build, 7, 30)[:-1])
    assert len(kinds(rings)) == 7


@pytest.mark.parametrize(
    ("cpus", "hz", "expected_bytes"),
    [
        *((1, 97, 2 << 20), (2, 97, 2 << 20), (96, 97, 256 << 10), (192, 97, 128 << 10), (8192, 97, 64 << 10)),
        *((2, 1999, 2 << 20), (2, 4656, 4 << 20), (96, 4656, 256 << 10)),
    ],
)
def test_many_cores_share_the_memory_of_rings_and_a_higher_rate_has_more(cpus: int, hz: int, expected_bytes: int) -> None:
    pages = _ring_pages(cpus, hz)
    assert pages & (pages - 1) == 0
    assert pages * PAGE_BYTES == expected_bytes


def test_a_core_that_went_offline_between_two_reads_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> int:
        raise OSError(19, "No such device")

    monkeypatch.setattr(rings_module, "open_event", gone)
    rings = Rings(97)
    rings.follow([0], 1)
    assert rings.cpus == frozenset()


def test_a_refusal_is_told_after_every_core_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def refused(_: object, cpu: int) -> int:
        tried.append(cpu)
        raise PermissionMissing(f"core {cpu}", "be root")

    monkeypatch.setattr(rings_module, "open_event", refused)
    with pytest.raises(PermissionMissing, match="core 0"):
        Rings(97).follow([0, 1, 2], 3)
    assert tried == [0, 1, 2]


@pytest.mark.parametrize("knows_ksymbol", [True, False])
def test_a_kernel_without_records_of_bpf_programs_is_sampled_all_the_same(
    monkeypatch: pytest.MonkeyPatch, knows_ksymbol: bool
) -> None:
    def opened(attr: EventAttr, cpu: int) -> int:
        if attr.flags & FLAG_KSYMBOL and not knows_ksymbol:
            raise OSError(22, "Invalid argument")
        return os.open("/dev/null", os.O_RDONLY)

    monkeypatch.setattr(rings_module, "open_event", opened)
    rings = Rings(97)
    with pytest.raises(SourceUnavailable, match="cannot map the ring"):  # it was opened, and is no event
        rings.follow([0], 1)
    assert rings.tells_kernel_code is knows_ksymbol


def test_a_rate_the_kernel_refuses_names_the_sysctl(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(rings_module, "open_event", refused)
    with pytest.raises(SourceUnavailable) as caught:
        Rings(9999).follow([0], 1)
    assert "perf_event_max_sample_rate" in caught.value.hint


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def online() -> tuple[int, ...]:
    with open("/sys/devices/system/cpu/online") as file:
        return parse_cpus(file.read())


@pytest.mark.root
@pytest.mark.kernel
def test_rings_follow_cores_that_come_and_go_and_give_their_descriptors_back() -> None:
    before = descriptors()
    rings = Rings(97, CgroupLedger(Path("/")).tracepoint_ids)
    rings.follow(online(), len(online()))
    assert rings.cpus == frozenset(online())
    assert len(rings.tracepoint_of) == 3 * len(online())
    assert len(rings.descriptors()) == len(online())
    of_all = descriptors()
    rings.follow(online()[:1], len(online()))
    assert rings.cpus == frozenset(online()[:1])
    assert len(online()) == 1 or descriptors() < of_all
    rings.follow(online(), len(online()))
    assert descriptors() == of_all
    assert len(rings.tracepoint_of) == 3 * len(online())
    rings.close()
    assert descriptors() == before


@pytest.mark.root
@pytest.mark.kernel
def test_a_tracepoint_that_cannot_be_opened_leaves_no_ring_that_never_fills() -> None:
    before = descriptors()
    rings = Rings(97, tracepoint_ids=(1 << 30,))
    with pytest.raises((SourceUnavailable, OSError)):
        rings.follow(online()[:1], 1)
    assert rings.cpus == frozenset()
    assert rings.tracepoint_of == {}
    assert descriptors() == before


@pytest.mark.root
@pytest.mark.kernel
def test_the_rate_can_be_changed_while_it_runs() -> None:
    rings = Rings(97)
    rings.follow(online(), len(online()))
    try:
        rings.set_hz(499)
        rings.drain(time.monotonic_ns())
        start_ns = time.thread_time_ns()
        while time.thread_time_ns() - start_ns < 200_000_000:
            pass
        mine = [record for record in rings.drain(time.monotonic_ns()).records if record[3] == os.getpid()]
    finally:
        rings.close()
    assert 50 < len(mine) < 200  # 0.2 s at 499 Hz are about 100, at 97 Hz 20
