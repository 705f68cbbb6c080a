"""Softirq delays: the programs' logic in a small interpreter, the difference of two map readings,
and the live kernel.
"""

import os
import struct
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from necroscope.errors import PermissionMissing, SourceUnavailable
from necroscope.model.reading import Moment
from necroscope.model.tables import SOFTIRQ_VECTORS
from necroscope.model.units import NS_PER_S
from necroscope.sources.perf import softirq_delay
from necroscope.sources.perf.softirq_delay import SoftirqDelay, difference
from necroscope.sources.perf.softirq_programs import (
    VECTOR_WORDS,
)

VECTORS = len(SOFTIRQ_VECTORS)

WORDS = VECTOR_WORDS

NET_RX = SOFTIRQ_VECTORS.index("net_rx")

NOW = Moment(10**18, 5_000_000_000)

MASK = (1 << 64) - 1


class Map:
    """The bytes of both maps, filled by core and vector."""

    def __init__(self, cores: int = 2) -> None:
        self.words = [0] * (cores * VECTORS * WORDS)
        self.worst = [0] * (cores * VECTORS)

    def count(self, cpu: int, vector: int, bucket: int, count: int, worst_ns: int = 0) -> "Map":
        self.words[(cpu * VECTORS + vector) * WORDS + 1 + bucket] = count
        self.worst[cpu * VECTORS + vector] = worst_ns
        return self

    def pending(self, cpu: int, vector: int, raised_ns: int) -> "Map":
        self.words[(cpu * VECTORS + vector) * WORDS] = raised_ns
        return self

    def bytes(self) -> bytes:
        return struct.pack(f"<{len(self.words)}Q", *self.words)

    def since(self, before: "Map") -> list[tuple[object, ...]]:
        worst = memoryview(struct.pack(f"<{len(self.worst)}Q", *self.worst)).cast("Q")
        return list(difference(before.bytes(), self.bytes(), worst, NOW))


def test_nothing_changed_is_no_row() -> None:
    assert Map().since(Map()) == []
    assert Map().count(0, NET_RX, 3, 7).since(Map().count(0, NET_RX, 3, 7)) == []


def test_counts_are_differences_and_the_histogram_ends_at_its_last_count() -> None:
    before = Map().count(1, NET_RX, 0, 100).count(1, NET_RX, 4, 2)
    after = Map().count(1, NET_RX, 0, 110).count(1, NET_RX, 4, 3, worst_ns=30_000)
    assert after.since(before) == [(NOW.time_ns, 1, "net_rx", 11, 30_000, 0, [10, 0, 0, 0, 1])]


def test_cores_and_vectors_have_rows_of_their_own() -> None:
    after = Map().count(0, 0, 0, 1).count(0, 9, 1, 2).count(1, 1, 0, 3)
    assert [(row[1], row[2], row[3]) for row in after.since(Map())] == [
        (0, "hi", 1),
        (0, "rcu", 2),
        (1, "timer", 3),
    ]


def test_a_raise_that_waits_is_a_stall_in_progress() -> None:
    raised_ns = NOW.monotonic_ns - 1_400_000_000
    assert Map().pending(0, NET_RX, raised_ns).since(Map()) == [
        (NOW.time_ns, 0, "net_rx", 0, 0, 1_400_000_000, [])
    ]


@pytest.mark.parametrize("low_byte", [0x00, 0x01, 0xFF])
def test_a_stall_is_seen_even_if_nothing_moves_on_the_core(low_byte: int) -> None:
    frozen = Map().pending(0, NET_RX, ((NOW.monotonic_ns - 2_000_000_000) & ~0xFF) | low_byte)
    ((_, cpu, vector, count, _, pending_ns, _),) = frozen.since(frozen)
    assert (cpu, vector, count) == (0, "net_rx", 0)
    assert isinstance(pending_ns, int)
    assert pending_ns >= 1_999_000_000


def test_a_raise_just_passing_by_is_no_row() -> None:
    assert Map().pending(0, NET_RX, NOW.monotonic_ns - 50_000).since(Map()) == []


def test_a_raise_after_the_clock_was_read_is_no_negative_wait() -> None:
    assert Map().pending(0, NET_RX, NOW.monotonic_ns + 50_000).since(Map()) == []


def test_a_worst_wait_that_ended_between_the_two_readings_is_not_lost() -> None:
    same = Map().count(0, NET_RX, 22, 1)
    after = Map().count(0, NET_RX, 22, 1, worst_ns=5_000_000_000)
    assert after.since(same) == [(NOW.time_ns, 0, "net_rx", 0, 5_000_000_000, 0, [])]


def moment() -> Moment:
    return Moment(time.time_ns(), time.monotonic_ns())


def cpus() -> int:
    return os.sysconf("SC_NPROCESSORS_CONF")


@pytest.fixture(params=["raw tracepoints", "tracepoints behind perf"])
def source(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> SoftirqDelay:
    if request.param == "tracepoints behind perf":
        monkeypatch.setattr(
            softirq_delay, "RawTracepointProgram", refusal(OSError(22, "Invalid argument"))
        )  # before 4.17
    return SoftirqDelay(tmp_path, range(cpus()))


def refusal(error: Exception) -> Callable[..., None]:
    def refused(*_: object) -> None:
        raise error

    return refused


@pytest.mark.root
@pytest.mark.kernel
def test_programs_load_count_and_leave_nothing(
    leaks: Callable[[], list[str]], source: SoftirqDelay
) -> None:
    assert source.read(moment()).rows == {}
    try:
        counted = 0
        deadline = time.monotonic() + 5
        while counted < 10 and time.monotonic() < deadline:
            time.sleep(0.02)  # sleeping makes timer and sched softirqs
            for row in source.read(moment()).rows.get("softirq_delay", []):
                _, cpu, vector, count, worst_ns, pending_ns, histogram = row
                assert 0 <= cpu < cpus()  # type: ignore[operator]
                assert vector in SOFTIRQ_VECTORS
                assert sum(histogram) == count  # type: ignore[arg-type]
                assert 0 <= worst_ns < 10**10  # type: ignore[operator]
                assert 0 <= pending_ns < 10**10  # type: ignore[operator]
                counted += count  # type: ignore[operator]
        assert counted >= 10
        # Where maps are shared memory, Python's mmap keeps a copy of each descriptor.
        assert open_bpf_descriptors() in (
            {"anon_inode:bpf-map": maps, "anon_inode:bpf-prog": 2} for maps in (2, 4)
        )
    finally:
        source.close()
    assert leaks() == []


def open_bpf_descriptors() -> Counter[str]:
    names = (os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
    return Counter(name for name in names if name in ("anon_inode:bpf-map", "anon_inode:bpf-prog"))


@pytest.mark.root
@pytest.mark.kernel
def test_it_rests_when_it_costs_too_much_and_says_so(
    leak_check: None, source: SoftirqDelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        softirq_delay, "ticks_of_rest", lambda rows, elapsed_ns: 3 if elapsed_ns == NS_PER_S else 0
    )
    second = [Moment(10**18 + number * NS_PER_S, number * NS_PER_S) for number in range(9)]
    readings = [source.read(second[number]) for number in range(2)]
    assert not open_bpf_descriptors()
    readings += [source.read(second[number]) for number in range(2, 5)]
    assert [[(gap.from_ns, gap.to_ns) for gap in reading.gaps] for reading in readings] == [
        [],
        [(second[1].time_ns, second[1].time_ns)],
        [],
        [],
        [(second[1].time_ns, second[4].time_ns)],
    ]
    assert "1 % of a core" in readings[-1].gaps[0].cause
    assert open_bpf_descriptors()
    source.close()


@pytest.mark.root
@pytest.mark.kernel
def test_a_rest_can_be_ended_at_once(
    leak_check: None, source: SoftirqDelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(softirq_delay, "ticks_of_rest", lambda rows, elapsed_ns: 14)
    second = [Moment(10**18 + number * NS_PER_S, number * NS_PER_S) for number in range(4)]
    rests = [source.is_resting for _ in map(source.read, second[:2])]
    source.wake()
    assert [(gap.from_ns, gap.to_ns) for gap in source.read(second[3]).gaps] == [
        (second[1].time_ns, second[3].time_ns)
    ]
    assert [*rests, source.is_resting, bool(open_bpf_descriptors())] == [False, True, False, True]
    source.close()


@pytest.mark.root
@pytest.mark.kernel
def test_it_can_be_opened_again_after_it_was_closed(leak_check: None, source: SoftirqDelay) -> None:
    for _ in range(2):
        source.read(moment())
        source.read(moment())
        source.close()
    source.close()


@pytest.mark.root
@pytest.mark.kernel
@pytest.mark.parametrize(
    "error",
    [
        PermissionMissing("refused", "be root"),
        SourceUnavailable("no more files", "raise it"),
        OSError(12, "Cannot allocate memory"),
    ],
)
def test_a_refusal_half_way_leaves_nothing_open_however_often_it_is_tried(
    leak_check: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(softirq_delay, "RawTracepointProgram", refusal(error))
    monkeypatch.setattr(softirq_delay, "TracepointProgram", refusal(error))
    source = SoftirqDelay(tmp_path, range(cpus()))
    for _ in range(3):
        with pytest.raises(SourceUnavailable) as caught:
            source.read(moment())
        assert "/proc/softirqs" in caught.value.hint
