"""The stacks source when something changes: records are lost, a segment begins, kernel code comes and
goes, names are late.
"""

import random
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sources.perf.sampled_node import SECOND, UTC_NS, Node, table

from necroscope.errors import SourceUnavailable
from necroscope.sources.perf import sampler as sampler_module


def test_ledger_rows_come_in_the_recordings_time(node: Node, build: Any) -> None:
    reading = node.read_all(build.tracepoint(42, b"raw"))
    assert reading.rows == {"cgroup_ledger": [(UTC_NS + 42, 33, b"raw")]}


def test_a_tracepoint_of_a_core_that_just_went_is_passed_over(node: Node, build: Any) -> None:
    assert node.read_all(build.tracepoint(42, b"raw", identifier=999)).rows == {}


def test_lost_samples_are_a_gap_and_cost_no_names(node: Node, build: Any) -> None:
    node.read(build.comm(1, 100, b"known"))
    node.proc(100, "renamed")
    reading = node.read_all(build.lost(SECOND + 1, 7), build.lost(SECOND + 2, 2))
    assert [(gap.table, gap.cpu, gap.lost) for gap in reading.gaps] == [("samples", 0, 9)]
    assert node.comms(build.sample(2 * SECOND + 1, kernel=[5])) == ["known"]


def test_lost_records_of_tasks_are_a_gap_of_frames_and_ledger_and_start_the_names_afresh(
    node: Node, build: Any
) -> None:
    node.read(build.comm(1, 100, b"stale"))
    node.proc(100, "renamed")
    reading = node.read_all(build.lost(SECOND + 1, 7, identifier=801))
    assert [(gap.table, gap.cpu, gap.lost) for gap in reading.gaps] == [
        ("frames", 0, 7),
        ("cgroup_ledger", 0, None),
    ]
    assert (reading.gaps[0].from_ns, reading.gaps[0].to_ns) == (
        UTC_NS + SECOND,
        UTC_NS + 2 * SECOND,
    )
    assert node.comms(build.sample(2 * SECOND + 1, kernel=[5])) == ["renamed"]


def test_throttling_is_a_gap_of_that_core(node: Node, build: Any) -> None:
    reading = node.read_all(build.throttle(1), cpu=1)
    assert [(gap.table, gap.cpu, gap.lost) for gap in reading.gaps] == [("samples", 1, None)]


def test_a_new_segment_numbers_stacks_from_the_start_and_asks_nothing(
    node: Node, build: Any, lookup: Any
) -> None:
    user = [
        build.comm(1, 100, b"app", is_exec=True),
        build.mmap2(2, 100, 0x400000, 0x1000, b"/bin/app"),
    ]
    node.read(*user, build.sample(3, user=[0x400010]), build.sample(4, kernel=[build.KERNEL_BASE]))
    asked = lookup.asked
    node.sampler.start_segment()
    reading = node.read_all(
        build.sample(SECOND + 1, kernel=[build.KERNEL_BASE]),
        build.sample(SECOND + 2, user=[0x400010]),
    )
    assert [row[6] for row in table(reading, "samples")] == [0, 1]
    assert [row[0] for row in reading.rows["frames"]] == [0, 1]
    assert lookup.asked == asked


def test_a_new_segment_numbers_the_stacks_of_kernel_threads_anew_too(
    node: Node, build: Any
) -> None:
    """They map nothing, and nothing of theirs is ever located."""
    node.read(
        *(build.sample(time, pid=9, kernel=[build.KERNEL_BASE + 16 * time]) for time in range(1, 4))
    )
    node.read(build.sample(SECOND + 1, pid=9, kernel=[build.KERNEL_BASE + 0x30]))
    node.sampler.start_segment()
    reading = node.read_all(build.sample(2 * SECOND + 1, pid=9, kernel=[build.KERNEL_BASE + 0x30]))
    assert [row[6] for row in table(reading, "samples")] == [0]


def test_seen_on_tells_who_was_on_the_core_with_the_commonest_stack(node: Node, build: Any) -> None:
    node.proc(100, "hog")
    node.proc(200, "guest")
    node.rings.write(1, build.sample(9, pid=300, kernel=[5]))
    node.read(
        build.sample(1, pid=100, kernel=[build.KERNEL_BASE + 0x10], argument=7),
        build.sample(2, pid=100, kernel=[build.KERNEL_BASE + 0x10], argument=8),
        build.sample(3, pid=200, kernel=[build.KERNEL_BASE + 0x30]),
        build.sample(4, pid=100, kernel=[build.KERNEL_BASE + 0x20], argument=9),
    )
    first, second = node.seen_on(0)
    assert (first.comm, first.samples, first.first_argument) == ("hog", 3, 8)
    assert node.frame(first.stack).function == "k_10"
    assert (second.comm, second.samples, second.first_argument) == ("guest", 1, None)
    assert node.seen_on(5) == []


def test_seen_on_after_a_new_segment_gives_no_number_of_the_old_one(node: Node, build: Any) -> None:
    node.read(build.sample(1, kernel=[5]))
    node.sampler.start_segment()
    assert node.seen_on(0) == []


def test_a_program_just_loaded_has_its_own_name_at_once_and_not_its_neighbours(
    node: Node, build: Any
) -> None:
    address = build.KERNEL_BASE + 0x9010
    name = "bpf_prog_6deef7357e7b4530_audit"
    assert node.functions(build.ksymbol(1, name.encode()), build.sample(2, kernel=[address])) == [
        name
    ]


def test_a_program_that_was_unloaded_names_no_new_address(node: Node, build: Any) -> None:
    address = build.KERNEL_BASE + 0x9010
    loaded, gone = (
        build.ksymbol(1, b"bpf_prog_one"),
        build.ksymbol(2, b"bpf_prog_one", is_gone=True),
    )
    assert node.functions(loaded, gone, build.sample(3, kernel=[address])) != ["bpf_prog_one"]


def test_kernel_code_that_a_record_names_reloads_no_symbols(
    node: Node, build: Any, lookup: Any
) -> None:
    program = build.KERNEL_BASE + 0x9000
    for _ in range(150):
        rows = node.read(
            build.ksymbol(node.now_ns + 1, start=program),
            build.sample(node.now_ns + 2, kernel=[program]),
        )
    assert rows
    assert lookup.reloads == 0


def test_lost_records_reload_symbols_at_most_every_minute_and_only_when_code_is_seen(
    node: Node, build: Any, lookup: Any
) -> None:
    def read_for_150_s(address: int) -> None:
        for _ in range(150):
            node.read_all(
                build.lost(node.now_ns + 1, 7, identifier=801),
                build.sample(node.now_ns + 2, kernel=[address]),
            )

    read_for_150_s(build.KERNEL_BASE + 16)
    assert lookup.reloads == 0
    read_for_150_s(build.KERNEL_BASE + 0x20000)
    assert lookup.reloads == 3


def test_modules_and_programs_that_no_record_tells_of_are_read_within_a_minute(
    rings: Any, lookup: Any, tmp_path: Path, build: Any
) -> None:
    ena = build.KERNEL_BASE + 0x20000
    lookup.names[ena] = ("ena_io_poll", "[ena]")
    modules = tmp_path / "proc/modules"
    modules.parent.mkdir()
    modules.write_text("ena 147456 0 - Live 0xffffffffc0a00000\n")
    node = Node(rings, lookup, tmp_path)
    node.read_all(build.sample(1, kernel=[ena]))

    def reloads_in_150_s() -> int:
        before = lookup.reloads
        for _ in range(150):
            node.read_all(build.sample(node.now_ns + 2, kernel=[ena]))
        return int(lookup.reloads - before)

    assert reloads_in_150_s() == 0
    modules.write_text("ena 147456 0 - Live 0xffffffffc0d00000\n")
    assert reloads_in_150_s() == 1
    rings.tells_kernel_code = False
    assert reloads_in_150_s() == 3


def test_cgroups_are_read_again_every_minute(node: Node, build: Any) -> None:
    node.proc(100, "app", "/a")
    node.read(build.sample(1, kernel=[5]))
    node.proc(100, "app", "/b")
    cgroups = [node.read(build.sample(node.now_ns + 1, kernel=[5]))[0]["cgroup"] for _ in range(70)]
    assert cgroups[:58] == ["/a"] * 58
    assert cgroups[-1] == "/b"


@pytest.mark.parametrize("seed", range(20))
def test_no_content_of_records_ends_the_recorder(node: Node, build: Any, seed: int) -> None:
    """Type and size are the kernel's; everything else may be anything."""
    chance = random.Random(seed)
    kinds = [
        build.sample(1, kernel=[1, 2], user=[0x1010], argument=4),
        build.comm(2, 100, b"name", is_exec=True),
        build.fork(3, 200, 100),
        build.mmap2(4, 100, 0x1000, 0x1000, b"/bin/x"),
        build.lost(5, 1),
        build.throttle(6),
        build.tracepoint(7, b"raw"),
        build.exit(8, 200),
        build.ksymbol(9),
    ]
    for record in chance.choices(kinds, k=60):
        changed = bytearray(record)
        for _ in range(chance.randrange(4)):
            changed[chance.randrange(8, len(changed))] = chance.randrange(256)
        node.rings.write(0, bytes(changed))
    node.read_all(after_ns=(1 << 64) - SECOND)


def test_samples_wait_in_the_rings_while_the_first_names_are_loading(
    node: Node, build: Any, lookup: Any
) -> None:
    lookup.is_loading = True
    assert node.read(build.sample(1, kernel=[5])) == []
    lookup.is_loading = False
    assert len(node.read()) == 1


def test_what_was_renamed_on_a_core_without_a_ring_has_its_new_name_once_the_ring_is_back(
    node: Node, build: Any
) -> None:
    node.proc(100, "bash")
    assert node.comms(build.sample(500, pid=100, tid=100)) == ["bash"]
    ring = node.rings._rings.pop(1)
    node.rings._native = None
    node.rings._interrupted.add(1)
    assert node.comms(build.sample(SECOND + 500, pid=100, tid=100)) == ["bash"]
    node.proc(100, "train")
    node.rings._rings[1] = ring
    assert node.comms(build.sample(2 * SECOND + 500, pid=100, tid=100)) == ["train"]


class FakeFilter:
    is_safe = True

    def is_harmless(self) -> bool:
        return self.is_safe

    def dropped(self) -> int:
        return 0


def test_the_idle_filter_is_off_while_another_program_would_lose_its_samples(
    node: Node, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle, used = FakeFilter(), []
    monkeypatch.setattr(sampler_module, "make_idle_filter", lambda *_: idle)
    monkeypatch.setattr(node.rings, "use_idle_filter", used.append)
    node.sampler.filter_idle(2)
    assert used == [idle]
    idle.is_safe = False
    node.read_all()
    assert used == [idle]
    node.read_all(build.ksymbol(node.now_ns + 1, b"bpf_prog_of_another"))
    assert used == [idle, None]
    idle.is_safe = True
    node.read_all(build.ksymbol(node.now_ns + 1, b"bpf_prog_of_another", is_gone=True))
    assert used == [idle, None, idle]


def test_a_kernel_that_cannot_take_a_filter_off_gets_none(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle, used = FakeFilter(), []
    idle.close = lambda: None  # type: ignore[attr-defined]

    def use(chosen: FakeFilter | None) -> None:
        used.append(chosen)
        if chosen is not None:
            raise SourceUnavailable("Invalid argument")

    monkeypatch.setattr(sampler_module, "make_idle_filter", lambda *_: idle)
    monkeypatch.setattr(node.rings, "use_idle_filter", use)
    node.sampler.filter_idle(2)
    node.read_all(after_ns=61 * SECOND)
    assert used == [idle, None]
