"""The stacks source on rings fed by hand: each sample is named as its task was called at that
moment.
"""

import random
from pathlib import Path
from typing import Any

import pytest
from tests.synthetic_root import put_into_a_cgroup_namespace

from necroscope.errors import SourceUnavailable
from necroscope.model.frame import Frame
from necroscope.model.reading import Moment, Reading, Rows
from necroscope.model.tables import TABLES
from necroscope.profile.kernel_functions import KernelFunctions
from necroscope.segment.block import rows_of
from necroscope.sources.perf import sampler as sampler_module
from necroscope.sources.perf.sampler import Sampler
from necroscope.sources.perf.seen_tasks import SeenTask

UTC_NS = 1_776_249_000_000_000_000
SECOND = 1_000_000_000


class FakeLedger:
    def row(self, time_ns: int, tracepoint_id: int, raw: bytes) -> tuple[object, ...]:
        return (time_ns, tracepoint_id, raw[:3])


def table(reading: Reading, name: str) -> Rows:
    """The rows of a table that comes as columns."""
    columns = reading.columns.get(name)
    return (
        []
        if columns is None
        else rows_of(TABLES[name], len(columns), map(memoryview, columns.buffers))
    )


class Node:
    """A sampler with a clock; `read` drains what was written and gives its rows by column name."""

    def __init__(self, rings: Any, lookup: Any, root: Path) -> None:
        self.rings = rings
        self.root = root
        rings.tracepoint_of = {701: 33}
        self.sampler = Sampler(rings, lookup, FakeLedger(), root)  # type: ignore[arg-type]
        self.sampler.profile.kernel = KernelFunctions(
            self.sampler.profile.core, lookup.read_kernel_symbols
        )
        self.now_ns = 0

    def read_all(self, *written: bytes, cpu: int = 0, after_ns: int = SECOND) -> Reading:
        self.now_ns += after_ns
        self.rings.write(cpu, *written)
        return self.sampler.read(Moment(UTC_NS + self.now_ns, self.now_ns))

    def read(self, *written: bytes, cpu: int = 0) -> list[dict[str, Any]]:
        names = [column.name for column in TABLES["samples"].columns]
        return [
            dict(zip(names, row, strict=True))
            for row in table(self.read_all(*written, cpu=cpu), "samples")
        ]

    def functions(self, *written: bytes) -> list[str | None]:
        """The innermost function of each sample."""
        return [self.frame(row["stack"]).function for row in self.read(*written)]

    def frame(self, stack: int) -> Frame:
        return self.sampler.frames_of(stack)[0]

    def seen_on(self, cpu: int) -> list[SeenTask]:
        return self.sampler.seen_on(cpu, UTC_NS + self.now_ns)

    def comms(self, *written: bytes) -> list[str]:
        return [row["comm"] for row in self.read(*written)]

    def proc(self, pid: int, comm: str, cgroup: str = "/") -> None:
        task = self.root / f"proc/{pid}/task/{pid}"
        task.mkdir(parents=True, exist_ok=True)
        (task / "comm").write_text(f"{comm}\n")
        (self.root / f"proc/{pid}/cgroup").write_text(f"0::{cgroup}\n")


@pytest.fixture
def node(rings: Any, lookup: Any, tmp_path: Path) -> Node:
    return Node(rings, lookup, tmp_path)


def test_a_sample_becomes_a_row(node: Node, build: Any) -> None:
    node.proc(100, "kubelet", "/system.slice/kubelet.service")
    (row,) = node.read(build.sample(500, pid=100, tid=100, kernel=[build.KERNEL_BASE]))
    assert row == {
        "time": UTC_NS + 500,
        "cpu": 0,
        "pid": 100,
        "tid": 100,
        "comm": "kubelet",
        "cgroup": "/system.slice/kubelet.service",
        "stack": 0,
        "weight": 1,
    }


def test_a_sample_tells_the_nodes_path_also_from_within_a_cgroup_namespace(
    rings: Any, lookup: Any, tmp_path: Path, build: Any
) -> None:
    put_into_a_cgroup_namespace(tmp_path)
    node = Node(rings, lookup, tmp_path)
    node.proc(100, "kubelet", "/../../system.slice/kubelet.service")
    (row,) = node.read(build.sample(500, pid=100, kernel=[build.KERNEL_BASE]))
    assert row["cgroup"] == "/system.slice/kubelet.service"


def test_frames_and_stacks_come_with_the_first_sample_that_needs_them(
    node: Node, build: Any
) -> None:
    sample = build.sample(500, kernel=[build.KERNEL_BASE + 16, build.KERNEL_BASE + 1])
    first = node.read_all(sample)
    assert [row[1] for row in first.rows["frames"]] == ["k_0", "k_10"]
    assert table(first, "stacks") == [(0, -1, 0), (1, 0, 1)]
    assert table(first, "samples")[0][6] == 1
    again = node.read_all(
        build.sample(SECOND + 5, kernel=[build.KERNEL_BASE + 16, build.KERNEL_BASE + 1])
    )
    assert (again.rows, again.columns.keys()) == ({}, {"samples"})


def test_a_quiet_second_has_no_rows(node: Node) -> None:
    reading = node.read_all()
    assert (reading.rows, reading.columns) == ({}, {})


def test_an_exec_in_mid_drain_names_samples_before_and_after_it_rightly(
    node: Node, build: Any
) -> None:
    node.comms(build.comm(1, 100, b"runc"))
    assert node.comms(
        build.sample(SECOND + 1, kernel=[5]),
        build.comm(SECOND + 2, 100, b"app", is_exec=True),
        build.sample(SECOND + 3, kernel=[5]),
    ) == ["runc", "app"]


def test_an_exec_on_another_core_is_ordered_by_time(node: Node, build: Any) -> None:
    node.comms(build.comm(1, 100, b"runc"))
    node.rings.write(1, build.comm(SECOND + 2, 100, b"app", is_exec=True))
    assert node.comms(
        build.sample(SECOND + 1, kernel=[5]), build.sample(SECOND + 3, kernel=[5])
    ) == ["runc", "app"]


def test_an_exec_gives_the_new_programs_symbols_to_later_samples_only(
    node: Node, build: Any
) -> None:
    old, new = node.read(
        build.comm(1, 100, b"old", is_exec=True),
        build.mmap2(2, 100, 0x400000, 0x1000, b"/bin/old", inode=1),
        build.sample(3, user=[0x400010]),
        build.comm(4, 100, b"new", is_exec=True),
        build.mmap2(5, 100, 0x400000, 0x1000, b"/bin/new", inode=2),
        build.sample(6, user=[0x400010]),
    )
    assert [node.frame(row["stack"]).module for row in (old, new)] == ["/bin/old", "/bin/new"]


def test_a_fork_then_exec_within_a_drain_is_named_all_the_way(node: Node, build: Any) -> None:
    node.proc(100, "bash")
    assert node.comms(
        build.sample(1, pid=100, kernel=[5]),
        build.fork(2, pid=200, parent=100),
        build.sample(3, pid=200, kernel=[5]),
        build.comm(4, 200, b"true", is_exec=True),
        build.sample(5, pid=200, kernel=[5]),
        build.exit(6, 200),
        build.sample(7, pid=200, kernel=[5]),
    ) == ["bash", "bash", "true", "true"]


def test_a_fork_seen_on_another_core_after_the_childs_exec_does_not_undo_it(
    node: Node, build: Any
) -> None:
    # The drain empties core 0 first; then the fork comes there, and the exec on core 1, which is
    # emptied after it.
    node.proc(100, "bash")
    node.proc(200, "true")
    node.read(build.sample(1, pid=100, kernel=[5]))
    after = node.now_ns + SECOND + 10
    node.rings.write(
        1,
        build.comm(after + 1, 200, b"true", is_exec=True),
        build.sample(after + 2, pid=200, kernel=[5]),
    )
    assert node.read() == []
    assert node.comms(
        build.fork(after, pid=200, parent=100), build.sample(after + 3, pid=200, kernel=[5])
    ) == ["true", "true"]


def test_a_forked_child_has_its_parents_symbols(node: Node, build: Any) -> None:
    assert node.functions(
        build.comm(1, 100, b"app", is_exec=True),
        build.mmap2(2, 100, 0x400000, 0x1000, b"/bin/app"),
        build.fork(3, pid=200, parent=100),
        build.sample(4, pid=200, user=[0x400010]),
    ) == ["f_10"]


def test_an_idle_sample_is_dropped_even_before_its_name_was_known(
    node: Node, build: Any, lookup: Any
) -> None:
    idle = [
        build.sample(time_ns, pid=0, kernel=[build.IDLE, build.KERNEL_BASE])
        for time_ns in range(1, 6)
    ]
    reading = node.read_all(*idle)
    assert (table(reading, "samples"), reading.idle_samples) == ([], 5)
    assert len(lookup.kernel_asked) == 2
    again = build.sample(SECOND + 1, pid=0, kernel=[build.IDLE, build.KERNEL_BASE])
    assert node.read_all(again).idle_samples == 1
    assert node.sampler.idle_dropped == 6


def test_a_lookup_process_that_was_left_behind_is_a_gap_of_names_once(
    node: Node, lookup: Any
) -> None:
    node.read_all()
    lookup.restarts = 1
    (gap,) = node.read_all().gaps
    assert (gap.table, gap.to_ns - gap.from_ns) == ("frames", SECOND)
    assert gap.cause.startswith("the lookup process hung, ended or could not start")
    assert node.read_all().gaps == []


def test_an_idle_sample_kept_for_the_next_drain_is_dropped_if_its_name_was_learnt_meanwhile(
    node: Node, build: Any
) -> None:
    chain = {"pid": 0, "kernel": [build.IDLE, build.KERNEL_BASE]}
    assert node.read(build.sample(1, **chain), build.sample(SECOND + 1, **chain)) == []
    assert node.read() == []
    assert node.sampler.idle_dropped == 2


def test_a_sample_beside_idle_ones_keeps_its_stack_and_argument(node: Node, build: Any) -> None:
    idle = {"pid": 0, "kernel": [build.IDLE]}
    node.read(
        build.sample(1, **idle),
        build.sample(2, pid=100, kernel=[build.KERNEL_BASE + 32], argument=7),
        build.sample(3, **idle),
        build.sample(4, pid=200, kernel=[build.KERNEL_BASE + 48], argument=8),
    )
    seen = [
        (task.pid, task.first_argument, node.frame(task.stack).function) for task in node.seen_on(0)
    ]
    assert seen == [(100, 7, "k_20"), (200, 8, "k_30")]


def test_interrupt_on_idle_core_is_work(node: Node, build: Any) -> None:
    (row,) = node.read(build.sample(1, pid=0, kernel=[build.KERNEL_BASE + 64, build.IDLE]))
    assert (row["pid"], row["comm"]) == (0, "swapper")


def test_a_task_that_has_left_the_pid_table_fits_its_columns(node: Node, build: Any) -> None:
    (row,) = node.read(build.sample(1, pid=-1, tid=-1, kernel=[5]))
    assert (row["pid"], row["tid"], row["comm"], row["cgroup"]) == (-1, -1, "[exited]", None)


def test_a_chain_seen_many_times_in_a_drain_costs_one_question(
    node: Node, build: Any, lookup: Any
) -> None:
    program = [
        build.comm(1, 100, b"app", is_exec=True),
        build.mmap2(2, 100, 0x400000, 0x1000, b"/bin/app"),
    ]
    chain = {"kernel": [build.KERNEL_BASE, build.KERNEL_BASE + 9], "user": [0x400010, 0x400021]}
    rows = node.read(*program, *(build.sample(time_ns, **chain) for time_ns in range(3, 100)))
    assert len({row["stack"] for row in rows}) == 1
    assert lookup.kernel_asked == [build.KERNEL_BASE]
    assert [request.blocks for request in lookup.user_asked] == [(0,)]


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


def test_new_kernel_code_reloads_symbols_at_most_every_minute_and_only_when_it_is_seen(
    node: Node, build: Any, lookup: Any
) -> None:
    module = build.KERNEL_BASE + 0x20000
    for _ in range(150):
        node.read_all(
            build.ksymbol(node.now_ns + 1),
            build.sample(node.now_ns + 2, kernel=[build.KERNEL_BASE + 16]),
        )
    assert lookup.reloads == 0
    for _ in range(150):
        node.read_all(
            build.ksymbol(node.now_ns + 1), build.sample(node.now_ns + 2, kernel=[module])
        )
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
