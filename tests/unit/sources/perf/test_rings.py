"""The rings of all cores: how large they are, which events they take, and cores that come and
go.
"""

import contextlib
import gc
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from necroscope.errors import PermissionMissing, SourceUnavailable
from necroscope.perf_abi import records
from necroscope.perf_abi.event_attr import FLAG_KSYMBOL, EventAttr
from necroscope.sources.perf import rings as rings_module
from necroscope.sources.perf.cgroup_ledger import CgroupLedger
from necroscope.sources.perf.ring import PAGE_BYTES
from necroscope.sources.perf.rings import Rings, _sample_ring_pages, _task_ring_pages
from necroscope.sources.sysfs.cpus import parse as parse_cpus


@pytest.mark.parametrize(
    ("cpus", "hz", "sample_kib", "task_kib"),
    [
        *((1, 97, 512, 2048), (2, 97, 512, 2048), (96, 97, 128, 256), (192, 97, 64, 128)),
        *((8192, 97, 64, 64), (2, 1999, 1024, 2048), (2, 4656, 4096, 2048), (96, 4656, 128, 256)),
    ],
)
def test_many_cores_share_the_memory_of_rings_and_a_higher_rate_has_more(
    cpus: int, hz: int, sample_kib: int, task_kib: int
) -> None:
    pages = _sample_ring_pages(cpus, hz), _task_ring_pages(cpus)
    assert all(count & (count - 1) == 0 for count in pages)
    assert [count * PAGE_BYTES >> 10 for count in pages] == [sample_kib, task_kib]


def test_a_core_that_went_offline_between_two_reads_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(*_: object, **__: object) -> int:
        raise OSError(19, "No such device")

    monkeypatch.setattr(rings_module, "open_event", gone)
    rings = Rings(97)
    rings.follow([0], 1)
    assert rings.cpus == frozenset()


def test_a_refusal_is_reported_after_every_core_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def refused(_: object, cpu: int) -> int:
        tried.append(cpu)
        raise PermissionMissing(f"core {cpu}", "be root")

    monkeypatch.setattr(rings_module, "open_event", refused)
    with pytest.raises(PermissionMissing, match="core 0"):
        Rings(97).follow([0, 1, 2], 3)
    assert tried == [0, 1, 2]


def test_cores_that_are_refused_every_second_leave_no_garbage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(_: object, cpu: int) -> int:
        raise OSError(22, f"core {cpu}")

    monkeypatch.setattr(rings_module, "open_event", refused)
    rings = Rings(97)
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            with contextlib.suppress(SourceUnavailable):
                rings.follow(range(96), 96)
        assert gc.collect() < 10  # the recorder looks for cycles once in many minutes
    finally:
        gc.enable()


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
    os.close(rings._open_task_event(0, 16))
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
    rings.close()
    assert descriptors() == before


def own_samples(rings: Rings) -> int:
    """Samples of this process in the rings, which are emptied by it."""
    found = 0
    for data in [ring.drain() for ring in rings._rings.values()]:
        at = 0
        while at < len(data):
            kind, _, size = records.HEADER.unpack_from(data, at)
            found += (
                kind == records.SAMPLE
                and int.from_bytes(data[at + 16 : at + 20], "little") == os.getpid()
            )
            at += size
    return found


@pytest.mark.root
@pytest.mark.kernel
def test_the_rate_can_be_changed_while_it_runs() -> None:
    rings = Rings(97)
    rings.follow(online(), len(online()))
    try:
        rings.set_hz(499)
        own_samples(rings)
        start_ns = time.thread_time_ns()
        while time.thread_time_ns() - start_ns < 200_000_000:
            pass
        found = own_samples(rings)
    finally:
        rings.close()
    assert 50 < found < 200  # 0.2 s at 499 Hz are about 100, at 97 Hz 20


# Maps and unmaps a file, again and again: each is a record of a task.
MAPS = """
import mmap, os, sys
file = os.open(sys.executable, os.O_RDONLY)
os.sched_setaffinity(0, {int(sys.argv[1])})
while True:
    mmap.mmap(file, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
"""


def kinds(data: bytes) -> Counter[int]:
    found: Counter[int] = Counter()
    at = 0
    while at < len(data):
        kind, _, size = records.HEADER.unpack_from(data, at)
        found[kind] += 1
        at += size
    return found


@pytest.mark.root
@pytest.mark.kernel
def test_who_maps_in_a_loop_costs_its_core_no_sample() -> None:
    cpu = online()[0]
    rings = Rings(997)
    rings.follow([cpu], 8192)  # of this many cores each has the least of rings
    hostile = subprocess.Popen([sys.executable, "-c", MAPS, str(cpu)])
    tasks: Counter[int] = Counter()
    samples: Counter[int] = Counter()
    deadline = time.monotonic() + 20
    try:
        # A lost record is reported with the next one that finds room, so the ring is emptied each time.
        while not tasks[records.LOST] and time.monotonic() < deadline:
            time.sleep(0.1)
            samples += kinds(rings._rings[cpu].drain())
            tasks += kinds(rings._task_rings[cpu].drain())
    finally:
        hostile.kill()
        hostile.wait()
        rings.close()
    assert tasks[records.LOST]
    assert tasks[records.MMAP2] > 100
    assert not tasks[records.SAMPLE]
    assert set(samples) <= {records.SAMPLE, records.THROTTLE, records.UNTHROTTLE}
    assert samples[records.SAMPLE] > 10
