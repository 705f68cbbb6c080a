"""Waits: the records and their bounds by hand-made bytes, and the programs on the live kernel."""

import itertools
import os
import struct
import time
from pathlib import Path

import pytest
from tests.injected_waits import INJECTIONS, sleeping_in_the_kernel

from necroscope.errors import SourceUnavailable
from necroscope.model.reading import Moment, Row
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_MS
from necroscope.sources.perf import wait_layout as layout
from necroscope.sources.perf import waits
from necroscope.sources.perf.asleep_tasks import AsleepTask
from necroscope.sources.perf.bpf import MapValue
from necroscope.sources.perf.wait_naming import is_in_the_way, without_scheduling
from necroscope.sources.perf.wait_probe import WaitProbe
from necroscope.sources.perf.wait_programs import WaitPrograms
from necroscope.sources.perf.wait_records import parse
from necroscope.sources.perf.waits import OpenWaits, Waits, bounded, difference
from necroscope.sources.sysfs import cpus

POSSIBLE = Path("/sys/devices/system/cpu/possible")


def record(
    kind: int = layout.RUNNABLE,
    waited_ms: int = 50,
    tid: int = 7,
    cgroup_id: int = 40,
    ran_ms: int = 0,
    end_ms: int = 10_000,
) -> bytes:
    ns = NS_PER_MS
    task = struct.pack("<II16sQIiII", tid, tid, b"trainer", cgroup_id, 0, 120, 2, 0)
    other = struct.pack("<II16sQIiII", 9, 9, b"h\x1bog", cgroup_id, 1, 49, 1, 0)
    head = struct.pack("<IiQQ", kind, 3, end_ms * ns, waited_ms * ns)
    made = head + task + other + struct.pack("<Q", ran_ms * ns)
    return made.ljust(layout.OPEN_BYTES, b"\0") if kind == layout.RUNNABLE else made


def test_a_record_says_who_waited_and_who_had_the_core() -> None:
    wait = parse(record(ran_ms=48))
    assert (wait.kind, wait.cpu, wait.waited_ns) == ("runnable", 3, 50 * NS_PER_MS)
    assert (wait.task.comm, wait.task.policy, wait.task.cores_allowed) == ("trainer", "other", 2)
    assert wait.other is not None
    assert (wait.other.comm, wait.other.policy) == ("h\\x1bog", "fifo")
    assert is_in_the_way(wait, None)


def test_one_that_had_the_core_for_a_moment_is_not_in_the_way() -> None:
    assert not is_in_the_way(parse(record(waited_ms=50, ran_ms=1)), None)


def test_one_that_an_interrupt_fell_on_is_not_in_the_way() -> None:
    sleep = parse(record(layout.BLOCKED) + bytes(layout.BLOCKED_BYTES - layout.ADDRESS))
    assert is_in_the_way(sleep, "mutex_unlock;rtnl_unlock")
    assert not is_in_the_way(sleep, "complete;blk_update_request;handle_softirqs")


@pytest.mark.parametrize("interrupt", ["asm_sysvec_irq_work", "sysvec_kvm_asyncpf_interrupt"])
def test_every_interrupt_of_the_processor_is_known_by_its_prefix(interrupt: str) -> None:
    sleep = parse(record(layout.BLOCKED) + bytes(layout.BLOCKED_BYTES - layout.ADDRESS))
    assert not is_in_the_way(sleep, f"complete;end_bio;{interrupt};vfs_read")


def test_of_a_stack_that_was_cut_off_nobody_is_named() -> None:
    """The interrupt may be in what is missing."""
    lengths = struct.pack("<Qqq", 0, 0, layout.STACK_BYTES)
    tail = lengths.ljust(layout.BLOCKED_BYTES - layout.ADDRESS, b"\1")
    sleep = parse(record(layout.BLOCKED) + tail)
    assert len(sleep.other_stack) == layout.STACK_BYTES
    assert not is_in_the_way(sleep, "complete;end_bio;blk_mq_complete_request")
    assert is_in_the_way(sleep, "up_write;vfs_write;do_syscall_64")


class QuietProbe:
    """Nothing ends; `open` go on, and each look is counted."""

    is_attached = True
    open: list[bytes] = []  # noqa: RUF012
    looks = 0

    def __init__(self, *_: object) -> None:
        type(self).open = []

    def records(self) -> list[bytes]:
        return []

    def open_waits(self) -> list[bytes]:
        type(self).looks += 1
        return self.open

    def asleep(self, _: object) -> list[AsleepTask]:
        return []

    def cores(self) -> bytes:
        return bytes(layout.CORE_BYTES)


def look_for(source: Waits, first: int, last: int) -> int:
    """How often all tasks were looked at in these seconds."""
    before = QuietProbe.looks
    for second in range(first, last + 1):
        source.read(Moment(second * 10**9, second * 10**9))
    return QuietProbe.looks - before


def test_a_look_at_very_many_tasks_comes_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "WaitProbe", QuietProbe)
    spent_ns = itertools.count(0, 40 * NS_PER_MS)
    source = Waits(Path("/"), (0,), 20 * NS_PER_MS, lambda _: None, lambda: next(spent_ns))
    assert look_for(source, 1, 21) == 5


def test_all_tasks_are_looked_at_every_other_second_and_every_second_while_one_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waits, "WaitProbe", QuietProbe)
    source = Waits(Path("/"), (0,), 20 * NS_PER_MS, lambda _: None, lambda: 0)
    assert look_for(source, 1, 11) == 5
    QuietProbe.open = [record(waited_ms=2_000, end_ms=13_000)]
    assert look_for(source, 12, 14) == 2, "it is news, so the next look comes at once"
    assert look_for(source, 15, 20) == 3
    source._rest = 0, 60 * 10**9
    assert look_for(source, 21, 25) == 5, "nothing else is seen while switches are not"


def test_a_stack_that_the_kernel_could_not_walk_is_empty() -> None:
    tail = struct.pack("<Qqq", 0, -14, 1 << 40)
    wait = parse(record(layout.BLOCKED) + tail + bytes(layout.STACK_BYTES))
    assert wait.stack == b""
    assert wait.other_stack == b""


def test_of_a_stack_only_what_is_not_the_scheduler_is_kept() -> None:
    assert (
        without_scheduling(["__schedule", "schedule", "rtnl_lock", "do_setlink"], is_waker=False)
        == "rtnl_lock;do_setlink"
    )
    assert (
        without_scheduling(
            ["bpf_trace_run1", "try_to_wake_up", "wake_up_q", "mutex_unlock"], is_waker=True
        )
        == "wake_up_q;mutex_unlock"
    )


def test_one_tenant_does_not_take_the_rows_of_another() -> None:
    noisy = [record(waited_ms=900, cgroup_id=40, tid=tid) for tid in range(1, 300)]
    kept, left_out = bounded([*noisy, record(waited_ms=30, cgroup_id=41)])
    assert [parse(one).task.cgroup_id for _, one in kept].count(41) == 1
    assert left_out == len(noisy) + 1 - len(kept) > 0


def test_one_who_may_make_cgroups_does_not_take_the_rows_of_another() -> None:
    noisy = [
        record(waited_ms=900, cgroup_id=cgroup, tid=tid)
        for cgroup in range(40, 60)
        for tid in range(1, 40)
    ]
    kept, _ = bounded([*noisy, record(waited_ms=30, cgroup_id=90)])
    assert [parse(one).task.cgroup_id for _, one in kept].count(90) == 1


def test_a_wait_that_goes_on_is_written_when_it_has_doubled() -> None:
    known, written = OpenWaits(), []
    for second in range(1, 33):
        found = known.new([record(waited_ms=second * 1000, end_ms=second * 1000)])
        written += [second] if found else []
    assert written == [1, 2, 4, 8, 16, 32]


def test_the_next_wait_of_the_same_task_is_another_wait() -> None:
    known = OpenWaits()
    assert known.new([record(waited_ms=1000, end_ms=1000)])
    assert known.new([record(waited_ms=300, end_ms=2000)])


def test_counts_of_a_tick_are_differences_and_lost_records_are_counted() -> None:
    before = bytearray(2 * layout.CORE_BYTES)
    after = bytearray(before)
    struct.pack_into("<Q", before, layout.CORE_BYTES, 5)
    struct.pack_into("<QQ", after, layout.CORE_BYTES, 7, 1)
    struct.pack_into("<Q", after, layout.CORE_BYTES + layout.WORST, 3_000)
    struct.pack_into("<Q", after, layout.CORE_BYTES + layout.LOST, 4)
    rows, lost = difference(bytes(before), bytes(after), 99)
    assert rows == [(99, 1, 3, 3_000, [2, 1])]
    assert lost == 4


def test_without_btf_the_reason_names_it(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable) as caught:
        WaitProbe(tmp_path, 2, 20 * NS_PER_MS)
    assert "btf" in caught.value.facts
    assert "CONFIG_DEBUG_INFO_BTF" in caught.value.hint


def test_waits_of_a_tick_are_written_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Probe(QuietProbe):
        def __init__(self, *_: object) -> None: ...

        def records(self) -> list[bytes]:
            return [record(waited_ms=50 + n, tid=n, end_ms=10_100 - n * 7 % 100) for n in range(30)]

        def open_waits(self) -> list[bytes]:
            return [record(waited_ms=3000, tid=99, end_ms=10_050)]

        def cores(self) -> bytes:
            return bytes(layout.CORE_BYTES)

    monkeypatch.setattr(waits, "WaitProbe", Probe)
    source = Waits(Path("/"), (0,), 20 * NS_PER_MS, lambda _: None)
    source.read(Moment(0, 0))
    rows = source.read(Moment(10**9, 10**9)).rows["waits"]
    times = [row[0] for row in rows]
    assert len(times) == 31
    assert all(isinstance(time_ns, int) for time_ns in times)
    assert times == sorted(times, key=str)  # of one length


def test_a_core_full_of_switches_makes_the_probe_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    class Probe(QuietProbe):
        is_attached = True

        def __init__(self, *_: object) -> None:
            self.switches = 0

        def records(self) -> list[bytes]:
            return []

        def open_waits(self) -> list[bytes]:
            return []

        def cores(self) -> bytes:
            self.switches += 200_000 if self.is_attached else 0
            return struct.pack("<Q", self.switches).ljust(layout.CORE_BYTES, b"\0")

        def attach(self) -> None:
            self.is_attached = True

        def detach(self) -> None:
            self.is_attached = False

    monkeypatch.setattr(waits, "WaitProbe", Probe)
    source = Waits(Path("/"), (0,), 20 * NS_PER_MS, lambda _: None)
    readings = [source.read(Moment(s * 10**9, s * 10**9)) for s in range(40)]
    measured = [s for s, reading in enumerate(readings) if reading.rows.get("run_delay")]
    assert 2 <= len(measured) <= 5
    assert "over 1 %" in readings[measured[1]].gaps[0].cause


@pytest.mark.root
@pytest.mark.kernel
@pytest.mark.parametrize("kind", INJECTIONS)
def test_a_wait_is_found_with_its_kind_and_length(kind: str) -> None:
    source = Waits(Path("/"), cpus.parse(POSSIBLE.read_text()), 20 * NS_PER_MS, lambda _: "f")
    columns = {column.name: place for place, column in enumerate(TABLES["waits"].columns)}

    def read() -> list[Row]:
        monotonic_ns = time.monotonic_ns()
        return source.read(Moment(monotonic_ns, monotonic_ns)).rows.get("waits", [])

    try:
        read()
        assert source._probe is not None
        if not source._probe.sees_calls and kind not in ("runnable", "blocked"):
            pytest.skip("this kernel does not tell in which system call a task sleeps (5.15 does)")
        before_ns = time.monotonic_ns()
        tid = INJECTIONS[kind](0.15)
        rows = [row for row in read() if row[columns["tid"]] == tid]
    finally:
        source.close()
    longest = max(rows, key=lambda row: row[1])  # type: ignore[arg-type, return-value]
    assert longest[columns["kind"]] == kind
    waited_ns = longest[columns["waited_ns"]]
    assert isinstance(waited_ns, int)
    assert 100 * NS_PER_MS <= waited_ns <= time.monotonic_ns() - before_ns
    assert longest[columns["stack"]]
    if kind == "runnable":
        assert longest[columns["by_policy"]] == "fifo"
    if kind in ("file_lock", "unread"):
        assert longest[columns["by_pid"]] == os.getpid()


@pytest.mark.root
@pytest.mark.kernel
@pytest.mark.parametrize(("kind", "is_taken"), [(layout.BLOCKED, False), (layout.AWAKE, True)])
def test_a_look_at_all_tasks_leaves_a_sleeper_its_place(kind: int, is_taken: bool) -> None:
    """Of two sleepers that meet in one place, the second found is not timed."""
    probe = WaitProbe(Path("/"), len(os.sched_getaffinity(0)), 20 * NS_PER_MS)
    sleepers = probe._held[1]
    assert isinstance(sleepers, MapValue)
    probe.detach()
    try:
        with sleeping_in_the_kernel() as tid:
            at = tid % layout.SLEEPERS * layout.SLEEPER_BYTES
            other = tid + layout.SLEEPERS
            sleepers.write_word(at, kind << 32 | other)
            sleepers.write_word(at + 8, time.monotonic_ns())
            probe.open_waits()
            assert int.from_bytes(sleepers.read()[at : at + 4], "little") == (
                tid if is_taken else other
            )
    finally:
        probe.close()


def test_without_bpf_who_stands_still_is_seen_in_proc_and_the_gap_says_how_little_that_is(
    tmp_path: Path,
) -> None:
    process = tmp_path / "proc/71"
    process.mkdir(parents=True)
    fields = ["D", *["0"] * 35, "3", "0", "0", *["0"] * 12]
    (process / "stat").write_text(f"71 (train er) {' '.join(fields)}")
    (process / "schedstat").write_text("100 200 5")
    (process / "stack").write_text("[<0>] rpc_wait_bit_killable+0x1/0x2\n[<0>] nfs_getattr+0x1/0x2")
    source = Waits(tmp_path, (0, 1), 20 * NS_PER_MS, lambda _: None)
    readings = [source.read(Moment(s * 10**9, s * 10**9)) for s in range(1, 12)]
    assert all("looks at /proc" in reading.parts[0].error.facts for reading in readings)
    rows = [row for reading in readings for row in reading.rows.get("waits", [])]
    assert [row[1] for row in rows] == [5 * 10**9, 10 * 10**9]
    assert rows[0][2:8] == ("blocked", True, 3, 71, 71, "train er")
    assert rows[0][12] == "rpc_wait_bit_killable;nfs_getattr"


@pytest.mark.parametrize(
    ("looks", "waited_s"),
    [
        # A build: it ran and waited in turn, seconds in all. A loop alone on its core: one long run.
        (["100 0 0", "900 3000000000 40", "1900 7000000000 80"], []),
        (["100 0 1", "5000000100 0 1", "10000000100 0 1"], []),
        (["100 0 1", "100 0 1", "100 0 1"], [5, 10]),
    ],
)
def test_without_bpf_only_who_did_not_run_once_stood(
    tmp_path: Path, looks: list[str], waited_s: list[int]
) -> None:
    process = tmp_path / "proc/71"
    process.mkdir(parents=True)
    (process / "stat").write_text(f"71 (x) {' '.join(['R', *['0'] * 50])}")
    source = Waits(tmp_path, (0,), 20 * NS_PER_MS, lambda _: None)
    found = []
    for look, schedstat in enumerate(looks):
        (process / "schedstat").write_text(schedstat)
        moment = Moment(look * 5 * 10**9, look * 5 * 10**9)
        found += source.read(moment).rows.get("waits", [])
    assert [row[1] for row in found] == [seconds * 10**9 for seconds in waited_s]
    assert all(row[2] == "runnable" for row in found)


@pytest.mark.parametrize(("release", "word"), [("6.6.87-rt54", "ring sleeps"), ("6.12.1", "btf")])
def test_a_real_time_kernel_whose_rings_sleep_is_left_alone(
    tmp_path: Path, release: str, word: str
) -> None:
    for path, text in (("sys/kernel/realtime", "1"), ("proc/sys/kernel/osrelease", release)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{text}\n")
    with pytest.raises(SourceUnavailable, match=word):
        WaitProbe(tmp_path, 2, 20 * NS_PER_MS)


def test_every_sleeper_that_is_taken_out_of_the_table_is_noted_as_awake() -> None:
    """Else a sleep of which the kernel says that it is queued is counted as a wait for a core."""
    places = layout.Places(*[8] * 24, has_state_argument=True, calls=None, blocker=None)
    maps = layout.WaitMaps(3, 4, 5, 6, 7, 8, 2)
    code = [*struct.iter_unpack("<BBhi", WaitPrograms(places, maps, 1000).at_waking())]
    taken = next(at for at, (operation, *_) in enumerate(code) if operation == 0x62)
    submitted = max(at for at, one in enumerate(code) if one[0] == 0x85 and one[3] == 132)
    is_jump = (0x05, 0x06)  # of the class; calls apart
    ends = [
        at + 1 + offset
        for at, (operation, _, offset, _) in enumerate(code)
        if taken < at < submitted and operation & 7 in is_jump and operation != 0x85
    ]
    assert ends
    assert all(end <= submitted + 1 for end in ends)
