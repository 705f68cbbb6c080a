"""A long kernel section is a collision only where a poll waits behind it."""

import pytest
from tests.drawn_node import DrawnNode, drawn_node
from tests.logged_events import captured, event_rows

from necroscope.analysis.engine import diagnose

NS = 1_000_000_000
HELD = """
    core 0:  ..............................
    core 1:  ...............rrrr...........
    r: system  collector[4711]  /system.slice/collector.service  read > vfs_read, seq_read_iter, timer_list_show, print_cpu
"""


def held(thread: str | None = "napi/eth0-8", picture: str = HELD) -> DrawnNode:
    """The thread of core 1 waits from second 15 to 19: the delay is booked when the wait ends."""
    node = drawn_node(picture)
    for second in range(1, 30):
        is_waiting = 16 <= second <= 18
        booked_ns = 4 * NS if second == 19 else 0
        values = {
            "state": "R" if is_waiting else "S",
            "run_ns": 0 if is_waiting else 1_000_000,
            "delay_ns": booked_ns,
        }
        if thread:
            node.add("runqueue", second, cpu=1, pid=99, comm=thread, **values)
    return node


def test_a_poll_that_waits_behind_a_kernel_section_is_named_with_who_held_the_core() -> None:
    (incident,) = diagnose(held()).incidents
    assert (incident.core, incident.mode, incident.verdict.cause) == (
        1,
        "system",
        "irq-core-collision",
    )
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "collector"
    assert incident.verdict.culprit.path[-1] == "print_cpu"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "collector.service"
    assert any("taskset" in line for line in incident.verdict.fix)


def test_on_many_cores_the_others_are_reported_in_ranges() -> None:
    picture = HELD + "\n".join(
        f"    core {cpu}:  {'.' * 30}" for cpu in (*range(2, 64), 65, *range(67, 70))
    )
    (incident,) = diagnose(held(picture=picture)).incidents
    assert incident.verdict.fix[0].startswith("taskset -apc 0,2-63,65,67-69 4711  #")


def test_a_kernel_thread_is_not_moved() -> None:
    work = "kworker/1:2[4711]  /  > kthread, worker_thread, process_one_work, some_new_walk"
    read = (
        "collector[4711]  /system.slice/collector.service  read > vfs_read, seq_read_iter,"
        " timer_list_show, print_cpu"
    )
    (incident,) = diagnose(held(picture=HELD.replace(read, work))).incidents
    assert incident.verdict.cause == "irq-core-collision"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "kworker/1:2"
    assert not any(line.startswith("taskset") for line in incident.verdict.fix)


def test_the_same_section_with_nobody_waiting_is_not_named() -> None:
    (incident,) = diagnose(held(thread=None)).incidents
    assert incident.verdict.cause == "unknown"


def test_a_thread_that_waited_a_moment_only_is_not_enough() -> None:
    node = held(thread=None).add(
        "runqueue",
        17,
        cpu=1,
        pid=99,
        comm="napi/eth0-8",
        state="S",
        run_ns=1,
        delay_ns=NS * 4 // 10,
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "unknown"


def reset(capture: str, queue: int, device: str) -> DrawnNode:
    """The core is held with no thread seen to wait; a driver's reset is of the queue whose
    interrupts it takes.
    """
    node = held(thread=None)
    node.add(
        "interrupts",
        10,
        cpu=1,
        irq="35",
        action=f"{device}-Tx-Rx-{queue}",
        device=device,
        queue=queue,
        count=900,
    )
    node.added["events"] = event_rows(captured(capture, 19))
    return node


@pytest.mark.parametrize(
    ("capture", "queue", "device"),
    [
        ("ena_2.8.0_lost_completions.txt", 4, "eth1"),
        ("ena_2.11.0_poll_starvation.txt", 5, "eth0"),
        ("ena_2.13.1_poll_starvation.txt", 11, "eth0"),
    ],
)
def test_a_driver_that_says_its_poll_was_due_confirms_it_without_a_thread(
    capture: str, queue: int, device: str
) -> None:
    (incident,) = diagnose(reset(capture, queue, device)).incidents
    assert incident.verdict.cause == "irq-core-collision"


def test_the_line_of_a_starved_poll_tells_it_alone_and_among_others() -> None:
    said = {"message": "napi handler hasn't been called", "device": "eth0", "cpu": 1}
    for kind, fields in (
        ("nic_napi_starved", None),
        ("nic_reset", '{"line_counts": {"ena.napi_starved": 1}}'),
    ):
        (incident,) = diagnose(held(thread=None).event(19, kind, fields=fields, **said)).incidents
        assert incident.verdict.cause == "irq-core-collision"


@pytest.mark.parametrize(
    ("capture", "queue", "device"),
    [("ena_2.5.0_lost_completions.txt", 2, "ens5"), ("ena_2.16.1_lost_completions.txt", 9, "ens5")],
    ids=["says nothing of it", "says that it was not due"],
)
def test_a_driver_that_does_not_say_so_confirms_nothing(
    capture: str, queue: int, device: str
) -> None:
    causes = [
        incident.verdict.cause for incident in diagnose(reset(capture, queue, device)).incidents
    ]
    assert "irq-core-collision" not in causes


def test_where_all_softirqs_stand_still_it_is_a_blackout() -> None:
    node = held()
    for second in range(16, 20):
        node.delay(second, 1, 1.5, "timer").delay(second, 1, 1.5, "net_rx").delay(
            second, 1, 1.5, "sched"
        )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "softirq-blackout"


def test_a_waiting_ksoftirqd_that_holds_back_softirqs_is_a_collision_as_on_old_kernels() -> None:
    node = held("ksoftirqd/1")
    for second in range(16, 20):
        node.delay(second, 1, 1.5, "timer").delay(second, 1, 1.5, "net_rx")
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "irq-core-collision"


def test_a_core_full_of_softirqs_is_not_this() -> None:
    storm = HELD.replace(
        "system  collector[4711]  /system.slice/collector.service  read >",
        "softirq  ksoftirqd/1[17]  /  >",
    ).replace(
        "ksys_read, vfs_read, seq_read_iter, timer_list_show, print_cpu",
        "run_ksoftirqd, handle_softirqs, net_rx_action, __napi_poll",
    )
    (incident,) = diagnose(held(picture=storm)).incidents
    assert incident.verdict.cause != "irq-core-collision"


def test_work_with_a_name_of_its_own_is_named_before_whom_it_hit() -> None:
    node = held(
        picture=HELD.replace(
            "seq_read_iter, timer_list_show, print_cpu", "memcg_stat_show, mem_cgroup_iter"
        )
    )
    (incident,) = diagnose(node.zombies(14, 68_680)).incidents
    assert incident.verdict.cause == "zombie-memcg-walk"
    assert any(other.cause == "irq-core-collision" for other in incident.alternatives)
