"""The screen that is built from rows: what is known, what is missing, and in which order."""

from collections.abc import Callable
from typing import Any

from necroscope.model.tables import TABLES
from necroscope.views.tui.core_model import task_waits_of
from necroscope.views.tui.look import Look
from necroscope.views.tui.screen import CoreOrder, Delay, Screen, ScreenCore
from necroscope.views.tui.top_model import build

MS = 1_000_000
S = 1_000_000_000


def core_of(screen: Screen, cpu: int) -> ScreenCore:
    return next(core for core in screen.cores if core.cpu == cpu)


def test_before_the_first_row_there_is_nothing_and_no_error(node: Any) -> None:
    node.notice_texts = ["stacks: cannot sample all CPUs"]
    screen = build(node, Look())
    assert (screen.at_ns, screen.cores, screen.all_cores, screen.zombies) == (None, (), None, None)
    assert screen.notices == ("stacks: cannot sample all CPUs",)


def test_a_hot_core_is_shown_with_who_is_on_it_and_where(node_of: Callable[..., Any]) -> None:
    hot = core_of(build(node_of(2), Look()), 1)
    assert hot.modes
    assert hot.delay
    assert (round(hot.modes.kernel, 2), hot.on[0].comm, hot.on[0].function) == (
        0.98,
        "kubelet",
        "memcg_page_state",
    )
    assert (hot.delay.worst_ns, hot.delay.vector, hot.delay.is_pending) == (
        1_240 * MS,
        "net_rx",
        True,
    )


def test_a_core_without_a_row_now_stays_as_a_gap_with_its_cause(node: Any) -> None:
    for cpu in (0, 1):
        node.core(1, cpu, user=0.5)
    node.core(2, 0, user=0.5)
    node.gap(1, "cores", "cpu 1 went offline", cpu=1)
    screen = build(node, Look())
    assert core_of(screen, 1).modes is None
    assert core_of(screen, 1).missing == "cpu 1 went offline"
    assert screen.all_cores
    assert screen.all_cores.busy == 0.5


def test_a_gap_of_all_tables_explains_every_core_only_while_it_lasts(node: Any) -> None:
    node.core(1, 0, user=0.5)
    node.core(9, 1, user=0.5)
    node.gap(1, "*", "the recorder was stopped", for_s=7)
    assert core_of(build(node, Look()), 0).missing == "the recorder was stopped"
    node.core(20, 1, user=0.5)
    assert core_of(build(node, Look()), 0).missing == "no row was recorded"


def test_softirq_delay_that_is_not_measured_is_none_and_the_signs_of_a_stall_stand_in(
    node: Any,
) -> None:
    for cpu in range(3):
        node.core(1, cpu, system=1.0)
        node.softirqs(1, cpu, 0 if cpu == 0 else 9)
    node.add("runqueue", (node.at(1), 1, 20, "ksoftirqd/1", "R", S, 0, 0, 0))
    screen = build(node, Look())
    assert screen.worst_delay is None
    assert [core.softirq_note for core in screen.cores] == ["frozen", "starving", None]


def test_an_idle_core_without_softirqs_is_not_frozen(node: Any) -> None:
    node.core(1, 0, user=0.1)
    node.softirqs(1, 0, 0)
    node.core(1, 1, user=1.0)
    node.softirqs(1, 1, None)
    assert [core.softirq_note for core in build(node, Look()).cores] == [None, None]


def test_each_order_puts_its_own_core_first_and_gaps_last(node: Any) -> None:
    node.core(1, 0, user=1.0)
    node.core(1, 1, system=0.2)
    node.core(1, 2, softirq=0.6)
    node.core(1, 3, user=0.1)
    node.core(0, 4, user=1.0)
    node.delay(1, 3, 5 * MS)
    orders = {sort: [core.cpu for core in build(node, Look(sort=sort)).cores] for sort in CoreOrder}
    assert orders == {
        CoreOrder.CPU: [0, 1, 2, 3, 4],
        CoreOrder.BUSY: [0, 2, 1, 3, 4],
        CoreOrder.SYSTEM: [2, 1, 0, 3, 4],
        CoreOrder.DELAY: [3, 2, 1, 0, 4],
    }


def test_many_cores_are_ordered_by_system_time_until_the_user_says_otherwise(
    node_of: Callable[..., Any],
) -> None:
    assert build(node_of(2), Look()).sort is CoreOrder.CPU
    many = build(node_of(128, seconds=2), Look())
    assert (many.sort, many.cores[0].cpu) == (CoreOrder.SYSTEM, 127)


def test_looking_back_shows_what_was_then_and_nothing_that_came_after(
    node_of: Callable[..., Any],
) -> None:
    node = node_of(2)
    screen = build(node, Look().move(-10 * S, node.span()))
    hot = core_of(screen, 1)
    assert hot.modes
    assert hot.modes.kernel == 0
    assert screen.back_ns == 10 * S
    assert [one.kind for one in screen.happenings] == ["gap"]


def test_the_oldest_moment_is_marked_and_is_not_passed(node_of: Callable[..., Any]) -> None:
    node = node_of(2)
    screen = build(node, Look().move(-3600 * S, node.span()))
    assert screen.is_oldest
    assert screen.at_ns == node.span()[0]


def test_only_cores_with_room_are_asked_who_is_on_them(node_of: Callable[..., Any]) -> None:
    screen = build(node_of(128, seconds=5), Look(sort=CoreOrder.CPU), looked_at=4)
    assert [bool(core.busy_history) for core in screen.cores] == [True] * 4 + [False] * 124
    assert core_of(
        build(node_of(128, seconds=5), Look(sort=CoreOrder.CPU, cpu=127), looked_at=4), 127
    ).on


def test_hostile_names_reach_the_screen_escaped(node: Any) -> None:
    node.core(1, 0, user=1.0)
    node.sample(1, 0, "\x1b]0;x\x07", kernel="[bold]f[/]", cgroup="/\u202ecod.exe")
    node.event(1, "nic_reset", "line\nwith \x1b[31mred", device="et\rh0")
    screen = build(node, Look())
    task = screen.cores[0].on[0]
    assert (task.comm, task.function, task.cgroup) == (
        "\\x1b]0;x\\x07",
        "[bold]f[/]",
        "/\\u202ecod.exe",
    )
    assert (screen.happenings[0].where, screen.happenings[0].text) == (
        "et\\x0dh0",
        "line\\x0awith \\x1b[31mred",
    )


def test_a_stall_in_progress_counts_though_no_wait_has_ended(node: Any) -> None:
    node.core(1, 0, system=1.0)
    node.delay(1, 0, 2 * MS, vector="timer")
    node.delay(1, 0, 0, vector="net_rx", pending_ns=900 * MS)
    delay = build(node, Look()).cores[0].delay
    assert delay
    assert (delay.worst_ns, delay.vector, delay.is_pending) == (900 * MS, "net_rx", True)


def test_a_task_that_waits_for_a_core_is_shown_on_it_and_nice_work_is_not() -> None:
    columns = [column.name for column in TABLES["waits"].columns]

    def row(**values: object) -> Any:
        given = {"time": S, "kind": "runnable", "policy": "other", "priority": 0, **values}
        return tuple(given.get(name) for name in columns)

    rows = [
        row(cpu=1, comm="trainer", waited_ns=950 * MS, is_open=True),
        row(cpu=1, comm="other", waited_ns=200 * MS, is_open=False),
        row(cpu=2, comm="backup", waited_ns=950 * MS, priority=19),
        row(cpu=3, comm="short", waited_ns=30 * MS),
    ]
    assert task_waits_of(rows) == {1: Delay(950 * MS, "trainer", is_pending=True)}
