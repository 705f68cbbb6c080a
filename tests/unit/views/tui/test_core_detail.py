"""The recent past of one core."""

from collections.abc import Callable
from typing import Any

from necroscope.views.tui.look import Look
from necroscope.views.tui.screen import CoreDetail
from necroscope.views.tui.top_model import build

MS = 1_000_000
S = 1_000_000_000


def detail_of(node: Any, cpu: int) -> CoreDetail:
    detail = build(node, Look(cpu=cpu, is_detail=True)).detail
    assert detail
    return detail


def test_each_mode_has_its_past_and_time_before_the_recording_is_a_gap(
    node_of: Callable[..., Any],
) -> None:
    history = detail_of(node_of(2, seconds=60), 1).mode_history["system"]
    assert history[-6:] == (0.0, 0.98, 0.98, 0.98, 0.98, 0.98)
    assert history[:120] == (None,) * 120
    assert None not in history[120:]


def test_delays_of_other_cores_prove_that_it_was_measured(node: Any) -> None:
    for second in range(1, 6):
        node.core(second, 0)
        node.core(second, 1)
    node.delay(3, 1, 7 * MS)
    node.delay(4, 0, 2 * MS, pending_ns=9 * MS)
    node.delay(5, 1, 3 * MS)
    assert detail_of(node, 0).delay_history_ns[-5:] == (None, None, 0, 9 * MS, 0)


def test_tasks_and_functions_are_those_of_the_last_ten_seconds_on_this_core(node: Any) -> None:
    for second in range(1, 31):
        node.core(second, 0, user=1.0)
        node.core(second, 1, user=1.0)
    node.sample(12, 0, "old")
    node.sample(25, 0, "kubelet", 7, kernel="f", times=3)
    node.sample(25, 1, "other")
    detail = detail_of(node, 0)
    assert (
        [task.comm for task in detail.tasks],
        [one.name for one in detail.functions],
        detail.samples,
    ) == (
        ["kubelet"],
        ["f"],
        3,
    )


def test_softirqs_threads_and_captured_tasks_belong_to_the_core(node: Any) -> None:
    for cpu in (0, 1):
        node.core(1, cpu, user=1.0)
        node.softirqs(1, cpu, 4 + cpu)
        node.add("runqueue", (node.at(1), cpu, 20 + cpu, f"ksoftirqd/{cpu}", "R", S, 0, S // 2, 1))
        argv0 = f"/usr/bin/{cpu}"
        row = (
            node.at(1),
            cpu,
            "saturated",
            7,
            7,
            "kubelet",
            90,
            argv0,
            None,
            "R",
            "other",
            0,
            "0-1",
            "read",
            "/memory.stat",
            None,
            None,
        )
        node.add("tasks", row)
    detail = detail_of(node, 1)
    assert detail.softirqs["net_rx"] == 5
    assert [(thread.comm, thread.run, thread.waited) for thread in detail.threads] == [
        ("ksoftirqd/1", 0.0, 0.5)
    ]
    assert [(one.program, one.syscall, one.file) for one in detail.captured] == [
        ("/usr/bin/1", "read", "/memory.stat")
    ]
