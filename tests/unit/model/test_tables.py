"""The stored schema holds together, and has what the design lists."""

import re

import pytest

from necroscope.model.reading import Gap
from necroscope.model.tables import _TABLES, SOFTIRQ_VECTORS, TABLES, Table, Type

INTERNED = {"stacks", "frames"}
LISTED = {
    "samples": "time cpu pid tid comm cgroup stack weight",
    "sampling": "time period_ns",
    "stacks": "stack parent frame",
    "frames": "frame function module kind offset build_id",
    "cores": (
        "time cpu elapsed_ns user_ns nice_ns system_ns idle_ns iowait_ns irq_ns softirq_ns steal_ns"
        " guest_ns"
    ),
    "core_minutes": (
        "time cpu ticks mean_user mean_system mean_irq mean_softirq mean_steal mean_idle"
        " worst_busy worst_user worst_system worst_irq worst_softirq worst_steal worst_delay_ns"
    ),
    "softirqs": (
        "time cpu elapsed_ns hi timer net_tx net_rx block irq_poll tasklet sched hrtimer rcu"
    ),
    "softirq_delay": "time cpu vector count worst_ns pending_ns histogram",
    "runqueue": "time cpu pid comm state elapsed_ns run_ns delay_ns slices",
    "run_delay": "time cpu count worst_ns histogram",
    "interrupts": "time cpu irq action device queue affinity elapsed_ns count",
    "nics": "time device driver firmware counter value",
    "cgroup_ledger": "time action hierarchy cgroup_id level path",
    "facts": "time kind name value",
    "job_members": (
        "time job kind role rank world_size attempt pid comm cgroup started_ns leader address cores"
        " gpus ended_ns status words peer"
    ),
    "job_progress": "time job pid cpu state elapsed_ns cpu_ns delay_ns",
    "gaps": "time end table cause cpu lost",
    "anchors": "time realtime_ns monotonic_ns boottime_ns log_clock_ns",
}
AT_LEAST = {
    "cgroups": "controller path tracked visible dying",
    "waits": "waited_ns kind is_open cpu pid tid comm cgroup policy stack by_pid by_comm by_policy",
    "late_beats": "time late_ns period_ns is_open pid tid comm cgroup stack",
    "tasks": "cpu trigger pid tid comm argv0 cgroup syscall file stack",
    "units": (
        "unit active_state sub_state result restarts main_status file_state preset fragment cgroup"
        " period_ns last_ns"
    ),
    "containers": (
        "container runtime name image namespace pod pod_uid qos cgroup state restarts exit_code"
        " oom_killed"
    ),
    "events": "kind cpu device queue message by_kernel sequence",
    "populations": "kind count pid comm cgroup",
    "network": "tcp_retransmits listen_drops tcp_receive_collapsed conntrack_drops",
    "pressure": "resource some_ns full_ns",
    "softnet": "cpu processed dropped time_squeeze",
    "memory": (
        "pgscan_kswapd pgscan_direct allocstall compact_stall pgfault slab_bytes dentries_negative"
    ),
    "log": "sequence severity facility message",
}


@pytest.mark.parametrize(("name", "columns"), LISTED.items())
def test_a_table_has_the_listed_columns_in_order(name: str, columns: str) -> None:
    assert [column.name for column in TABLES[name].columns] == columns.split()


@pytest.mark.parametrize(("name", "columns"), AT_LEAST.items())
def test_a_table_has_what_its_causes_need(name: str, columns: str) -> None:
    assert set(columns.split()) <= {column.name for column in TABLES[name].columns}


def test_every_table_is_named_once() -> None:
    assert len(TABLES) == len(_TABLES)
    assert TABLES.keys() == LISTED.keys() | AT_LEAST.keys()


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_column_is_named_once_and_says_what_it_means(table: Table) -> None:
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z][a-z0-9_]*", name) for name in (*names, table.name))
    assert table.meaning
    assert table.origin
    assert all(column.meaning and "{" not in column.meaning for column in table.columns)


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_time_comes_first_and_is_never_missing_but_for_interned_tables(table: Table) -> None:
    assert table.is_timed == (table.name not in INTERNED)
    assert not table.columns[0].nullable
    assert [column.name for column in table.columns[1:]].count("time") == 0
    assert table.columns[0].type is (Type.INT64 if table.is_timed else Type.INT32)


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_times_and_amounts_have_room(table: Table) -> None:
    for column in table.columns:
        if column.name.endswith(("_ns", "_bytes")):
            assert column.type is Type.INT64


def test_index_of_finds_a_column_by_name() -> None:
    assert TABLES["samples"].index_of("time") == 0
    assert TABLES["samples"].index_of("stack") == 6


def test_softirq_vectors_are_the_kernels_in_its_order() -> None:
    assert SOFTIRQ_VECTORS == (
        "hi",
        "timer",
        "net_tx",
        "net_rx",
        "block",
        "irq_poll",
        "tasklet",
        "sched",
        "hrtimer",
        "rcu",
    )


def test_a_gap_is_a_row_of_its_table() -> None:
    row = Gap("samples", 1, 2, "why", cpu=3, lost=4).row()
    by_name = dict(zip((column.name for column in TABLES["gaps"].columns), row, strict=True))
    assert by_name == {"time": 1, "end": 2, "table": "samples", "cause": "why", "cpu": 3, "lost": 4}
