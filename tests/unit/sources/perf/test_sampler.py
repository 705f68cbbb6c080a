"""The stacks source on rings fed by hand: each sample is named as its task was called at that
moment.
"""

from pathlib import Path
from typing import Any

from tests.synthetic_root import put_into_a_cgroup_namespace
from tests.unit.sources.perf.sampled_node import SECOND, UTC_NS, Node, table


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
