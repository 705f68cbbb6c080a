"""A node's metrics: counted once, worst cores as values, the last minute in gauges, as many series
on 96 cores as on 2.
"""

import re
import subprocess
from pathlib import Path

import pytest
from tests.drawn_node import NS, DrawnNode, at, drawn_node
from tests.drawn_waits import wait
from tests.growing_recording import GrowingRecording
from tests.ledger_entries import ledger_entry
from tests.programs import needs_promtool, program

from necroscope.model.reading import Gap
from necroscope.store.query import Store
from necroscope.views.prometheus.node_metrics import NodeMetrics

NODE = f"""
    core 0:  {"." * 100}
    core 1:  {"." * 20}{"k" * 10}{"." * 70}
    core 2:  {"u" * 10}{"." * 90}
    k: system  kubelet[1872]  /system.slice/kubelet.service  main > ksys_read, mem_cgroup_iter
    u: user  worker[99]  /user.slice  main, compute
"""


def metrics_of(recording: GrowingRecording, counts_from: float = 0) -> NodeMetrics:
    return NodeMetrics(
        Store.open(recording.directory), at(counts_from), "1.2.3", ["zombie-memcg-walk"]
    )


def values(metrics: NodeMetrics, now_s: float, *, is_recorded: bool = True) -> dict[str, float]:
    metrics.look(at(now_s), is_recorded=is_recorded)
    lines = [line for line in metrics.text().splitlines() if not line.startswith("#")]
    found = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
    assert len(found) == len(lines)
    return found


@pytest.fixture
def node() -> DrawnNode:
    return drawn_node(NODE)


@pytest.fixture
def recording(tmp_path: Path, node: DrawnNode) -> GrowingRecording:
    return GrowingRecording(tmp_path / "recording", node)


def test_a_held_core_is_counted_once_however_often_it_is_scraped(
    recording: GrowingRecording,
) -> None:
    metrics = metrics_of(recording)
    recording.grow(25.5)
    assert values(metrics, 25)[
        'necroscope_core_held_seconds_total{mode="system"}'
    ] == pytest.approx(5, abs=1)
    recording.grow(60)
    for _ in range(3):
        found = values(metrics, 60)
    assert found['necroscope_core_held_seconds_total{mode="system"}'] == pytest.approx(10, abs=1)
    assert found['necroscope_core_held_seconds_total{mode="user"}'] == pytest.approx(10, abs=1)
    assert found['necroscope_core_held_seconds_total{mode="steal"}'] == 0


def test_sealing_changes_no_count(recording: GrowingRecording) -> None:
    metrics = metrics_of(recording)
    recording.grow(60)
    before = values(metrics, 60)
    recording.seal()
    after = values(metrics, 60)
    assert before.pop("necroscope_recording_bytes") > 0
    assert after.pop("necroscope_recording_bytes") > 0
    assert after == before


def test_the_worst_core_is_a_value_and_is_forgotten_after_a_minute(
    recording: GrowingRecording,
) -> None:
    metrics = metrics_of(recording)
    recording.grow(60)
    found = values(metrics, 60)
    assert found['necroscope_worst_core_ratio{mode="system"}'] > 0.9
    assert found['necroscope_worst_core_number{mode="system"}'] == 1
    recording.grow(100)
    assert values(metrics, 100)['necroscope_worst_core_ratio{mode="system"}'] < 0.5


def test_what_was_before_the_start_is_in_gauges_and_not_in_counters(
    recording: GrowingRecording,
) -> None:
    recording.grow(60)
    found = values(metrics_of(recording, counts_from=60), 60)
    assert found['necroscope_core_held_seconds_total{mode="system"}'] == 0
    assert found['necroscope_worst_core_ratio{mode="system"}'] > 0.9
    assert not [name for name in found if name.startswith("necroscope_core_tick_ratio")]


def test_series_do_not_grow_with_cores(tmp_path: Path) -> None:
    counts = []
    for cores in (2, 96):
        picture = "\n".join(f"core {cpu}:  {'.' * 5}k{'.' * 4}" for cpu in range(cores))
        node = drawn_node(picture + "\nk: system  tool[44]  /  main > odd_driver_loop")
        for cpu in range(cores):
            node.delay(3, cpu, 0.1)
        counts.append(
            len(values(metrics_of(GrowingRecording(tmp_path / str(cores), node).grow(10)), 10))
        )
    assert counts[0] == counts[1] < 200


def test_softirq_delays_are_a_histogram_of_trimmed_rows_and_the_worst_has_its_core(
    tmp_path: Path,
) -> None:
    node = drawn_node(NODE)
    node.add(
        "softirq_delay",
        5,
        cpu=1,
        vector="net_rx",
        count=6,
        worst_ns=300_000_000,
        histogram=[1, 2, 3],
    )
    node.add(
        "softirq_delay", 5, cpu=2, vector="net_rx", count=1, worst_ns=10, histogram=[0] * 23 + [1]
    )
    node.add(
        "softirq_delay",
        6,
        cpu=0,
        vector="timer",
        count=1,
        worst_ns=5,
        pending_ns=2 * NS,
        histogram=[1],
    )
    found = values(metrics_of(GrowingRecording(tmp_path / "r", node).grow(10)), 10)
    assert found['necroscope_softirq_delay_seconds_bucket{vector="net_rx",le="4e-06"}'] == 3
    assert found['necroscope_softirq_delay_seconds_bucket{vector="net_rx",le="1.6e-05"}'] == 6
    assert found['necroscope_softirq_delay_seconds_bucket{vector="net_rx",le="4.194304"}'] == 6
    assert found['necroscope_softirq_delay_seconds_count{vector="net_rx"}'] == 7
    assert found['necroscope_softirq_worst_delay_seconds{vector="net_rx"}'] == 0.3
    assert found['necroscope_softirq_worst_core_number{vector="net_rx"}'] == 1
    assert found['necroscope_softirq_worst_delay_seconds{vector="other"}'] == 2
    assert found["necroscope_softirq_pending_seconds"] == 2


def test_without_the_probe_there_is_no_softirq_series(recording: GrowingRecording) -> None:
    found = values(metrics_of(recording.grow(30)), 30)
    assert not [name for name in found if name.startswith("necroscope_softirq_")]


def test_dead_cgroups_are_what_the_kernel_counts_or_else_what_is_not_visible(
    tmp_path: Path,
) -> None:
    node = drawn_node(NODE).zombies(5, 100).zombies(15, 68_680)
    node.add("cgroups", 15, controller="unified", path="/", tracked=50, visible=40)
    node.add("cgroups", 15, controller="memory", path="/kubepods", tracked=9, visible=9, dying=0)
    node.add("cgroup_ledger", 12, action="made", path="/x").add(
        "cgroup_ledger", 13, action="made", path="/y"
    )
    found = values(metrics_of(GrowingRecording(tmp_path / "r", node).grow(20)), 20)
    assert found['necroscope_cgroups_dying{controller="memory"}'] == 68_680
    assert found['necroscope_cgroups_dying{controller="unified"}'] == 10
    assert found['necroscope_cgroups_visible{controller="memory"}'] == 200
    assert found['necroscope_cgroup_changes_total{action="made"}'] == 2
    assert found['necroscope_cgroup_changes_total{action="released"}'] == 0


def test_events_that_come_late_are_counted_and_none_twice(tmp_path: Path) -> None:
    node = drawn_node(NODE).event(10, "nic_reset").event(30, "unit_restart")
    recording = GrowingRecording(tmp_path / "r", node).grow(40)
    metrics = metrics_of(recording)
    assert values(metrics, 40)['necroscope_events_total{kind="nic_reset"}'] == 1
    node.event(20, "ray_node_dead").event(20, "odd_kind")
    recording.late("events", *node.added["events"][-2:])
    for _ in range(2):
        found = values(metrics, 41)
    assert found['necroscope_events_total{kind="ray_node_dead"}'] == 1
    assert found['necroscope_events_total{kind="odd_kind"}'] == 1
    assert found['necroscope_events_total{kind="nic_reset"}'] == 1
    assert found['necroscope_events_total{kind="soft_lockup"}'] == 0


def test_a_line_that_a_recorder_started_anew_reads_again_is_counted_once(tmp_path: Path) -> None:
    node = drawn_node(NODE).event(10, "nic_reset", sequence=70)
    recording = GrowingRecording(tmp_path / "r", node).grow(40)
    metrics = metrics_of(recording)
    assert values(metrics, 40)['necroscope_events_total{kind="nic_reset"}'] == 1
    node.event(10.000007, "nic_reset", sequence=70).event(12, "nic_reset", sequence=71)
    recording.late("events", *node.added["events"][-2:])
    assert values(metrics, 41)['necroscope_events_total{kind="nic_reset"}'] == 2


def test_a_gap_counts_when_it_begins_and_its_length_when_it_ends(tmp_path: Path) -> None:
    node = drawn_node(NODE)
    recording = GrowingRecording(tmp_path / "r", node).grow(10)
    metrics = metrics_of(recording)
    recording.late("gaps", Gap("samples", at(9), at(9), "refused").row())
    assert values(metrics, 10)['necroscope_gaps_total{table="samples"}'] == 1
    recording.grow(30).late("gaps", Gap("samples", at(9), at(29), "refused", lost=7).row())
    for _ in range(2):
        found = values(metrics, 30)
    assert found['necroscope_gap_seconds_total{table="samples"}'] == 20
    assert found["necroscope_lost_samples_total"] == 7
    assert found['necroscope_gaps_total{table="*"}'] == 0


def test_an_hour_later_the_store_is_opened_anew_and_no_count_changes(
    recording: GrowingRecording,
) -> None:
    metrics = metrics_of(recording.grow(60))
    before, store = values(metrics, 60), metrics._store
    values(metrics, 3659)
    assert metrics._store is store
    after = values(metrics, 3661)
    assert metrics._store is not store
    assert before.pop("necroscope_recorder_up") == 1
    assert after.pop("necroscope_recorder_up") == 0
    assert after == before


def test_the_recorder_is_up_while_it_holds_the_recording_whatever_the_clock_says(
    recording: GrowingRecording,
) -> None:
    metrics = metrics_of(recording.grow(30))
    assert values(metrics, -7200)["necroscope_recorder_up"] == 1
    assert values(metrics, -7160)["necroscope_recorder_up"] == 0, "it hangs"
    recording.grow(33)
    assert values(metrics, -7160)["necroscope_recorder_up"] == 1
    found = values(metrics, -7160, is_recorded=False)
    assert found["necroscope_recorder_up"] == 0
    assert found["necroscope_recording_newest_timestamp_seconds"] == pytest.approx(
        at(32.5) / NS, abs=1
    )
    assert found["necroscope_cores"] == 3


def test_an_empty_recording_has_no_figures_but_says_so(recording: GrowingRecording) -> None:
    assert values(metrics_of(recording), 0)["necroscope_recorder_up"] == 1


def test_verdicts_are_counted_by_cause(recording: GrowingRecording) -> None:
    metrics = metrics_of(recording.grow(30))
    cause = "zombie-memcg-walk"
    metrics.verdicts.take(ledger_entry(cause, 20, 25, state="open"))
    metrics.verdicts.take(ledger_entry(cause, 20, 30))
    metrics.verdicts.take(ledger_entry(cause, 50, 52, core=None, confidence=0.75))
    metrics.verdicts.take(ledger_entry(cause, 51, 52, core=3, state="merged"))
    found = values(metrics, 30)
    assert found['necroscope_incidents_total{cause="zombie-memcg-walk"}'] == 2
    assert found['necroscope_incidents_total{cause="unknown"}'] == 0
    assert found['necroscope_last_incident_confidence_ratio{cause="zombie-memcg-walk"}'] == 0.75
    assert found['necroscope_last_incident_duration_seconds{cause="zombie-memcg-walk"}'] == 2
    assert 'necroscope_last_incident_core_number{cause="zombie-memcg-walk"}' not in found


def test_what_the_recorder_costs_has_no_line_while_nobody_knows(
    recording: GrowingRecording,
) -> None:
    metrics = metrics_of(recording.grow(30))
    assert not [name for name in values(metrics, 30) if name.startswith("necroscope_recorder_cpu")]
    metrics.note_recorder(1.5, 25_000_000)
    metrics.note_recorder(-0.1, 26_000_000)
    found = values(metrics, 30)
    assert found["necroscope_recorder_cpu_seconds_total"] == 1.5
    assert found["necroscope_recorder_resident_bytes"] == 26_000_000


def test_hostile_kinds_stay_in_their_labels(tmp_path: Path) -> None:
    node = drawn_node(NODE)
    for number in range(300):
        node.event(10, f'kind{number}"}} 1\nevil 1')
    text_of = metrics_of(GrowingRecording(tmp_path / "r", node).grow(20))
    text_of.look(at(20), is_recorded=True)
    lines = text_of.text().splitlines()
    assert not [line for line in lines if not re.match(r"# |necroscope_", line)]
    assert sum(line.startswith("necroscope_events_total{") for line in lines) <= 101


@needs_promtool
def test_promtool_finds_nothing_to_say(tmp_path: Path) -> None:
    node = drawn_node(NODE).zombies(5, 100).event(3, "nic_reset").delay(4, 1, 0.2)
    metrics = metrics_of(GrowingRecording(tmp_path / "r", node).grow(20))
    metrics.look(at(20), is_recorded=True)
    metrics.note_recorder(1, 1)
    metrics.verdicts.take(ledger_entry("unknown", 1, 2))
    ran = subprocess.run(
        [str(program("promtool")), "check", "metrics"],
        input=metrics.text(),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_waits_of_tasks_are_a_histogram_and_the_longest_of_each_kind(tmp_path: Path) -> None:
    node = drawn_node(NODE)
    node.add("run_delay", 5, cpu=1, count=6, worst_ns=300, histogram=[1, 2, 3])
    wait(node, 4, 0.95)
    wait(node, 4, 0.3, kind="futex")
    found = values(metrics_of(GrowingRecording(tmp_path / "r", node).grow(10)), 10)
    assert found["necroscope_run_delay_seconds_count"] == 6
    assert found['necroscope_worst_wait_seconds{kind="runnable"}'] == 0.95
    assert found['necroscope_worst_wait_seconds{kind="futex"}'] == 0.3
    assert 'necroscope_worst_wait_seconds{kind="blocked"}' not in found
