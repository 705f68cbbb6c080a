"""When to look closer: each kind of trigger, its edges, and what must not fire."""

import pytest

from necroscope.model.reading import Row, Rows
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_MS, NS_PER_S
from necroscope.recorder.triggers import NO_CPU, Triggers

MINUTE_NS = 60 * NS_PER_S
TEXTS = {"vector": "net_rx", "comm": "napi/eth0-3", "state": "R", "histogram": ""}


def row(table: str, **values: object) -> Row:
    columns = [column.name for column in TABLES[table].columns]
    assert values.keys() <= set(columns)
    filled = {"elapsed_ns": NS_PER_S} | TEXTS | values
    return tuple(filled.get(name, 0) for name in columns)  # type: ignore[misc]


def core(cpu: int, share: float = 0.0, elapsed_ns: int = NS_PER_S, **shares: float) -> Row:
    modes = {f"{mode}_ns": round(part * elapsed_ns) for mode, part in shares.items()}
    return row(
        "cores", cpu=cpu, elapsed_ns=elapsed_ns, **{"system_ns": round(share * elapsed_ns)} | modes
    )


class Fed:
    """Triggers with a clock; answers kind and core of what fires."""

    def __init__(self) -> None:
        self.triggers = Triggers()
        self.now_ns = 0

    def feed(self, table: str, *rows: Row, after_ns: int = NS_PER_S) -> list[tuple[str, int]]:
        self.now_ns += after_ns
        fed: Rows = list(rows)
        return [
            (trigger.kind, trigger.cpu) for trigger in self.triggers.feed(table, fed, self.now_ns)
        ]

    def softirqs(
        self, *cpus: int, elapsed_ns: int = NS_PER_S, **counts: int
    ) -> list[tuple[str, int]]:
        return self.feed(
            "softirqs",
            *(row("softirqs", cpu=cpu, elapsed_ns=elapsed_ns, **counts) for cpu in cpus),
            after_ns=0,
        )


@pytest.fixture
def fed() -> Fed:
    return Fed()


def test_a_core_held_in_the_kernel_for_a_second_fires(fed: Fed) -> None:
    assert fed.feed("cores", core(0, 0.1), core(1, 0.9)) == [("saturated", 1)]


def test_just_below_nine_tenths_does_not_fire(fed: Fed) -> None:
    assert fed.feed("cores", core(0, 0.89)) == []


@pytest.mark.parametrize("mode", ["system", "irq", "softirq", "steal"])
def test_each_kernel_mode_counts(fed: Fed, mode: str) -> None:
    assert fed.feed("cores", core(0, **{mode: 0.95})) == [("saturated", 0)]


def test_kernel_modes_are_added_up(fed: Fed) -> None:
    assert fed.feed("cores", core(0, system=0.3, irq=0.1, softirq=0.3, steal=0.25)) == [
        ("saturated", 0)
    ]


@pytest.mark.parametrize("mode", ["user", "nice", "guest", "iowait", "idle"])
def test_other_modes_alone_trigger_nothing(fed: Fed, mode: str) -> None:
    assert fed.feed("cores", core(0, **{mode: 1.0})) == []


def test_the_share_is_of_elapsed_time(fed: Fed) -> None:
    assert fed.feed("cores", row("cores", cpu=0, elapsed_ns=2 * NS_PER_S, system_ns=NS_PER_S)) == []


def test_a_second_that_is_a_little_short_is_a_second(fed: Fed) -> None:
    assert fed.feed("cores", core(0, 1.0, elapsed_ns=960 * NS_PER_MS)) == [("saturated", 0)]


def test_short_ticks_add_up_to_a_second(fed: Fed) -> None:
    fired = [
        fed.feed("cores", core(0, 1.0, 100 * NS_PER_MS), after_ns=100 * NS_PER_MS)
        for _ in range(15)
    ]
    assert fired.index([("saturated", 0)]) == 9
    assert sum(map(len, fired)) == 1


def test_one_short_tick_in_the_kernel_does_not_fire(fed: Fed) -> None:
    for share in (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0):
        assert fed.feed("cores", core(0, share, 100 * NS_PER_MS), after_ns=100 * NS_PER_MS) == []


def test_the_window_of_short_ticks_slides(fed: Fed) -> None:
    for _ in range(20):
        fed.feed("cores", core(0, 0.0, 100 * NS_PER_MS))
    fired = [fed.feed("cores", core(0, 1.0, 100 * NS_PER_MS)) for _ in range(10)]
    assert [len(found) for found in fired] == [0, 0, 0, 0, 0, 0, 0, 0, 1, 0]


def test_a_core_that_stays_saturated_fires_once(fed: Fed) -> None:
    fired = [fed.feed("cores", core(0, 1.0)) for _ in range(300)]
    assert sum(map(len, fired)) == 1


def test_a_core_that_is_saturated_again_fires_again_but_once_a_minute(fed: Fed) -> None:
    fired_at = [
        second
        for second in range(181)
        if fed.feed("cores", core(0, 1.0 if second % 10 < 5 else 0.0))
    ]
    assert fired_at == [0, 60, 120, 180]


def test_cores_fire_independently(fed: Fed) -> None:
    assert fed.feed("cores", core(0, 1.0), core(1, 0.0)) == [("saturated", 0)]
    assert fed.feed("cores", core(0, 1.0), core(1, 1.0)) == [("saturated", 1)]


def test_all_kinds_of_a_core_share_its_minute(fed: Fed) -> None:
    assert fed.feed("cores", core(0, 1.0)) == [("saturated", 0)]
    assert fed.feed("softirq_delay", row("softirq_delay", cpu=0, worst_ns=NS_PER_S)) == []
    assert fed.feed("softirq_delay", row("softirq_delay", cpu=1, worst_ns=NS_PER_S)) == [
        ("softirq_stall", 1)
    ]


@pytest.mark.parametrize("column", ["worst_ns", "pending_ns"])
def test_a_softirq_that_waits_100_ms_fires_whether_it_ended_or_not(fed: Fed, column: str) -> None:
    assert fed.feed("softirq_delay", row("softirq_delay", cpu=3, **{column: 99 * NS_PER_MS})) == []
    assert fed.feed("softirq_delay", row("softirq_delay", cpu=3, **{column: 100 * NS_PER_MS})) == [
        ("softirq_stall", 3)
    ]


def test_a_stall_says_which_vector_waited(fed: Fed) -> None:
    rows: Rows = [row("softirq_delay", cpu=0, vector="net_rx", pending_ns=1_400 * NS_PER_MS)]
    (trigger,) = fed.triggers.feed("softirq_delay", rows, 0)
    assert trigger.detail == "net_rx waited 1400 ms for its handler"


def test_no_softirq_on_a_busy_core_for_a_second_is_a_stall(fed: Fed) -> None:
    fed.feed("cores", core(0, user=1.0), core(1, 0.0))
    assert fed.softirqs(0, 1) == [("softirq_stall", 0)]


def test_one_vector_that_still_runs_is_no_freeze(fed: Fed) -> None:
    fed.feed("cores", core(0, user=1.0))
    assert fed.softirqs(0, timer=1) == []


def test_a_core_that_idles_may_run_no_softirq(fed: Fed) -> None:
    fed.feed("cores", core(0, user=0.5))
    assert fed.softirqs(0) == []


def test_a_busy_core_without_softirqs_in_a_short_tick_is_no_freeze_yet(fed: Fed) -> None:
    fired = []
    for _ in range(12):
        fed.feed("cores", core(0, elapsed_ns=100 * NS_PER_MS, user=1.0), after_ns=100 * NS_PER_MS)
        fired.append(fed.softirqs(0, elapsed_ns=100 * NS_PER_MS))
    assert fired.index([("softirq_stall", 0)]) == 9
    assert sum(map(len, fired)) == 1


def test_a_softirq_in_between_starts_the_second_anew(fed: Fed) -> None:
    for tick in range(30):
        fed.feed("cores", core(0, elapsed_ns=100 * NS_PER_MS, user=1.0), after_ns=100 * NS_PER_MS)
        assert fed.softirqs(0, elapsed_ns=100 * NS_PER_MS, sched=1 if tick % 9 == 0 else 0) == []


def test_a_napi_thread_that_is_runnable_and_does_not_run_fires(fed: Fed) -> None:
    assert fed.feed("runqueue", row("runqueue", cpu=2)) == [], "it may have been woken a moment ago"
    assert fed.feed("runqueue", row("runqueue", cpu=2)) == [("softirq_stall", 2)]


@pytest.mark.parametrize("values", [{"state": "S"}, {"run_ns": 1}, {"elapsed_ns": 99 * NS_PER_MS}])
def test_a_napi_thread_that_sleeps_runs_or_just_woke_does_not_fire(
    fed: Fed, values: dict[str, object]
) -> None:
    assert fed.feed("runqueue", row("runqueue", cpu=2, **values)) == []


def test_a_runnable_ksoftirqd_fires_only_where_softirqs_are_frozen(fed: Fed) -> None:
    ksoftirqd = [row("runqueue", cpu=cpu, comm=f"ksoftirqd/{cpu}") for cpu in (0, 1)]
    fed.feed("cores", core(0, user=1.0), core(1, user=1.0))
    fed.softirqs(0, 1, timer=5)
    assert fed.feed("runqueue", *ksoftirqd) == []
    fed.softirqs(1)
    fed.now_ns += 2 * MINUTE_NS
    assert fed.feed("runqueue", *ksoftirqd) == [("softirq_stall", 1)]


def test_a_stall_is_seen_by_counters_alone_as_long_as_it_lasts_whatever_fired(fed: Fed) -> None:
    fed.feed("cores", core(0, user=1.0))
    fed.feed("softirq_delay")  # measured a moment ago: nothing fires by the weaker sign
    assert fed.softirqs(0) == []
    assert fed.triggers.sees_stall
    fed.softirqs(0, timer=5)
    assert not fed.triggers.sees_stall
    napi = row("runqueue", cpu=0, comm="napi/eth0-1")
    for sees_stall in (False, True, True):
        fed.feed("runqueue", napi)
        assert fed.triggers.sees_stall is sees_stall
    fed.feed("runqueue")
    assert not fed.triggers.sees_stall


def test_an_alarm_of_the_log_fires_for_its_core_once_a_minute() -> None:
    triggers = Triggers()
    assert [
        (fired.kind, fired.cpu, fired.detail) for fired in triggers.alarm("nic_reset", 3, 0)
    ] == [("kernel_log", 3, "nic_reset")]
    assert triggers.alarm("nic_reset", 3, MINUTE_NS - 1) == []
    assert len(triggers.alarm("nic_reset", 3, MINUTE_NS)) == 1


def test_alarms_without_a_core_share_one_place() -> None:
    triggers = Triggers()
    assert [fired.cpu for fired in triggers.alarm("nic_reset", None, 0)] == [NO_CPU]
    assert triggers.alarm("soft_lockup", None, NS_PER_S) == []
    assert len(triggers.alarm("soft_lockup", 0, NS_PER_S)) == 1


def test_other_tables_trigger_nothing(fed: Fed) -> None:
    assert fed.feed("events", row("events", kind="oom_kill")) == []
    assert fed.feed("samples", row("samples", cpu=0)) == []


def test_a_core_full_of_user_code_is_described_after_some_seconds(fed: Fed) -> None:
    fired = [fed.feed("cores", core(0, user=1.0), core(1)) for _ in range(7)]
    assert fired == [[], [], [], [("user_busy", 0)], [], [], []]


def test_a_node_whose_cores_are_all_full_of_user_code_is_only_busy(fed: Fed) -> None:
    assert not any(fed.feed("cores", core(0, user=1.0), core(1, user=1.0)) for _ in range(9))


def test_who_only_computes_does_not_keep_a_stall_from_being_looked_at(fed: Fed) -> None:
    for _ in range(4):
        fed.feed("cores", core(0, user=1.0), core(1))
    assert fed.feed("cores", core(0, 1.0), core(1)) == [("saturated", 0)]


def test_a_napi_thread_that_mostly_waits_is_starving_though_it_runs(fed: Fed) -> None:
    waits = row("runqueue", cpu=1, pid=7, run_ns=50 * NS_PER_MS, delay_ns=900 * NS_PER_MS)
    assert fed.feed("runqueue", waits) == []
    assert fed.feed("runqueue", waits) == [("softirq_stall", 1)]


def io_pressure(share: float, elapsed_ns: int = NS_PER_S) -> Row:
    return row("pressure", resource="io", elapsed_ns=elapsed_ns, some_ns=round(share * elapsed_ns))


def test_work_that_stalls_for_io_for_seconds_is_asked_where_it_stands_once(fed: Fed) -> None:
    fired = [fed.feed("pressure", io_pressure(0.9)) for _ in range(7)]
    assert fired == [[], [], [], [("io_blocked", NO_CPU)], [], [], []]


def test_who_still_stands_some_seconds_later_is_looked_at_once_more(fed: Fed) -> None:
    fired = [fed.feed("pressure", io_pressure(0.9)) for _ in range(14)]
    assert [(second, kinds) for second, kinds in enumerate(fired, start=1) if kinds] == [
        (4, [("io_blocked", NO_CPU)]),
        (10, [("io_hung", NO_CPU)]),
    ]


def test_io_that_stalls_work_now_and_then_is_what_disks_do(fed: Fed) -> None:
    assert not any(
        fed.feed("pressure", io_pressure(0.9 if second % 3 else 0.1)) for second in range(12)
    )


def test_other_resources_and_kernels_without_the_figure_do_not_fire(fed: Fed) -> None:
    for _ in range(6):
        other = row("pressure", resource="memory", some_ns=NS_PER_S)
        assert fed.feed("pressure", other, row("pressure", resource="io", some_ns=None)) == []


def test_who_stands_still_does_not_keep_a_line_of_the_log_from_being_looked_at(fed: Fed) -> None:
    for _ in range(4):
        fed.feed("pressure", io_pressure(1.0))
    assert [trigger.kind for trigger in fed.triggers.alarm("nic_reset", None, fed.now_ns)] == [
        "kernel_log"
    ]


def test_an_ordinary_task_that_gets_no_core_fires_and_nice_work_does_not(fed: Fed) -> None:
    waited = {"kind": "runnable", "waited_ns": 950 * NS_PER_MS, "policy": "other", "comm": "x"}
    nice = row("waits", cpu=0, priority=10, **waited)
    short = row("waits", cpu=2, **waited | {"waited_ns": 90 * NS_PER_MS})
    asleep = row("waits", cpu=3, **waited | {"kind": "blocked"})
    assert fed.feed("waits", nice, short, asleep, row("waits", cpu=1, **waited)) == [
        ("task_waits", 1)
    ]


def test_who_waits_for_a_core_does_not_hide_that_the_kernel_holds_it(fed: Fed) -> None:
    waited = {"kind": "runnable", "waited_ns": 950 * NS_PER_MS, "policy": "other", "comm": "x"}
    assert fed.feed("waits", row("waits", cpu=1, **waited)) == [("task_waits", 1)]
    assert fed.feed("cores", core(0), core(1, 1.0)) == [("saturated", 1)]


def test_what_a_user_can_claim_does_not_use_up_the_kernels_minute() -> None:
    triggers = Triggers()
    assert len(triggers.alarm("job_member_died", None, 0, by_kernel=False)) == 1
    assert triggers.alarm("job_member_died", None, NS_PER_S, by_kernel=False) == []
    assert len(triggers.alarm("nic_reset", None, NS_PER_S)) == 1
