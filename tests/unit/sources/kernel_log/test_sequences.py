"""Lines that tell one story become one event, whatever lies between them."""

import pytest
from tests.kernel_log_stories import ENA0, dump, fields, read_story, said

from necroscope.model.reading import Alarm
from necroscope.model.units import NS_PER_S
from necroscope.sources.kernel_log.patterns import PatternSet
from necroscope.sources.kernel_log.sequences import AGE_LIMIT_NS, Sequencer

LOST = (
    "[1/2] Lost TX completions are above threshold (131 > 128), completion timeout: 5000 (msec), 11"
    " msecs since interrupt, 12 msecs since napi, qid: {queue}"
)


ENA_DUMPS = [
    ("ena_1.5.0_transmit_time_out.txt", "ens5", 3, None, "netdev.watchdog_old"),
    ("ena_2.2.10_lost_completions.txt", "eth0", 0, None, "ena.tx_not_completed"),
    ("ena_2.5.0_lost_completions.txt", "ens5", 2, None, "ena.tx_not_completed"),
    ("ena_2.8.0_lost_completions.txt", "eth1", 4, None, "ena.tx_not_completed"),
    ("ena_2.11.0_poll_starvation.txt", "eth0", 5, None, "ena.tx_q_paused"),
    ("ena_2.13.1_poll_starvation.txt", "eth0", 11, None, "netdev.watchdog_new"),
    ("ena_2.13.1_keepalive_failed.txt", "ens5", None, None, "ena.keepalive"),
    ("ena_2.16.1_lost_completions.txt", "ens5", 9, None, "ena.tx_not_completed"),
    ("ena_2.17.0_poll_starvation.txt", "ens5", 6, 22, "ena.tx_q_paused"),
    ("ena_2.17.0_lost_completions.txt", "ens5", 3, 17, "ena.new_missed"),
]


@pytest.mark.parametrize(("name", "device", "queue", "cpu", "pattern"), ENA_DUMPS)
def test_an_ena_reset_of_any_version_is_one_event(
    name: str, device: str, queue: int | None, cpu: int | None, pattern: str
) -> None:
    lines = dump(name)
    events, alarms = read_story(lines)
    assert [(event.kind, event.pattern) for event in events] == [("nic_reset", pattern)]
    (event,) = events
    assert (event.device, event.queue, event.cpu) == (device, queue, cpu)
    first = next(line for line in lines if line.text == event.message)
    assert (event.time_ns, event.sequence) == (first.time_ns, first.sequence)
    assert event.severity == min(line.severity for line in lines)
    assert event.lines is not None
    assert (
        event.lines.split("\n")[-2].startswith("ena 0000:")
        or "Device reset completed" in event.lines.split("\n")[-1]
    )
    assert fields(event)["outcome"] == ("failed" if "failed" in name else "completed")
    assert alarms[-1][:4] == ("nic_reset", cpu, device, queue)


@pytest.mark.parametrize("name", [name for name, *_ in ENA_DUMPS])
def test_a_reset_is_reported_once_and_its_lines_are_all_counted(name: str) -> None:
    lines = dump(name)
    (event,), alarms = read_story(lines)
    counts = fields(event)["line_counts"]
    assert isinstance(counts, dict)
    # The line that cuts off a warning stands before the first line that says what it is about.
    assert sum(counts.values()) == len(lines) - (1 if name.startswith("ena_1.5.0") else 0)
    assert len(alarms) <= 4


def test_the_numbers_of_a_starved_poll_are_kept_with_their_units() -> None:
    (event,), _ = read_story(dump("ena_2.17.0_poll_starvation.txt"))
    expected = {
        "napi_us": 5612000,
        "threshold_us": 5000000,
        "napi_scheduled": 1,
        "interrupt_ms": 5616,
        "status": 0,
    }
    assert expected.items() <= fields(event).items()
    assert fields(event)["counters"]["suspected_poll_starvation"] == 1  # type: ignore[index]


def test_timer_cpu_of_the_watchdog_is_a_field_and_no_column() -> None:
    (event,), _ = read_story(dump("ena_2.13.1_poll_starvation.txt"))
    assert (event.cpu, fields(event)["timer_cpu"]) == (None, 56)


def test_a_driver_that_no_longer_swaps_queue_and_cpu_is_read_right() -> None:
    lost = LOST.format(queue=9)
    for second in ("[2/2] qid: 40, napi CPU: 9", "[2/2] qid: 9, napi CPU: 40"):
        (event,), _ = read_story([said(ENA0 + lost), said(ENA0 + second)])
        assert (event.queue, event.cpu) == (9, 40)


def test_the_queue_that_caused_the_reset_wins_over_one_that_was_only_late() -> None:
    late = (
        "[1/2] 6 new missed TX completions, qid: 7, 5112 msecs since interrupt, 5108 msecs since"
        " napi, napi scheduled: 1"
    )
    late_2 = (
        "[2/2] qid: 7, highest TX completion pending time (msec): 5116, napi sched changes: 0, napi"
        " CPU: 12"
    )
    lost = LOST.format(queue=3)
    (event,), _ = read_story(
        [
            said(ENA0 + text)
            for text in (late, late_2, lost, "[2/2] qid: 5, napi CPU: 3", "Trigger reset is on")
        ]
    )
    assert (event.queue, event.cpu) == (3, 5)
    assert fields(event)["new_missed_queue"] == 7
    assert fields(event)["new_missed_2_cpu"] == 12
    assert fields(event)["napi_ms"] == 12


def test_success_that_follows_a_failed_attempt_is_a_failure() -> None:
    lines = [
        said(ENA0 + "Trigger reset is on"),
        said("ena 0000:00:05.0: Reset attempt failed. Can not reset the device", 1),
        said(
            "ena 0000:00:05.0: Device reset completed successfully, Driver info: Elastic Network"
            " Adapter (ENA) v2.11.0g",
            1,
        ),
    ]
    (event,), _ = read_story(lines)
    assert (event.kind, fields(event)["outcome"]) == ("nic_reset", "failed")


def test_two_devices_that_interleave_stay_apart() -> None:
    first, second = dump("ena_2.11.0_poll_starvation.txt"), dump("ena_2.17.0_lost_completions.txt")
    shifted = [
        line._replace(time_ns=line.time_ns - second[0].time_ns + first[0].time_ns)
        for line in second
    ]
    both = sorted([*first, *shifted], key=lambda line: line.time_ns)
    events, _ = read_story(both)
    assert {(event.device, event.queue, event.cpu) for event in events} == {
        ("eth0", 5, None),
        ("ens5", 3, 17),
    }
    for event in events:
        assert event.lines is not None
        assert ("ens5" in event.lines) != ("eth0" in event.lines)


def test_lines_of_others_in_between_do_not_end_a_story() -> None:
    lines = [
        said(ENA0 + "Trigger reset is on"),
        said("systemd[1]: hello", 1),
        said("usb 1-1: new device", 2),
    ]
    done = said("ena 0000:00:05.0: Device reset completed successfully", 3)
    (event,), _ = read_story([*lines, done])
    assert event.lines is not None
    assert "usb" not in event.lines


def test_a_reset_that_ends_without_its_start_says_so() -> None:
    (event,), alarms = read_story([said("ena 0000:20:03.0: Device reset completed successfully")])
    assert (event.kind, event.device, alarms) == ("nic_reset_done", "0000:20:03.0", [])


def test_the_published_excerpt_without_its_middle_is_still_a_reset() -> None:
    lines = dump("ena_2.11.0_poll_starvation.txt")
    (event,), _ = read_story([*lines[:2], *lines[-2:]])
    assert (event.kind, event.queue) == ("nic_reset", 5)


def test_counters_without_a_reset_are_no_event() -> None:
    assert read_story([said(ENA0 + "queue_0_tx_cnt: 4137606")]) == ([], [])


def test_silence_ends_a_story_in_the_time_of_the_log() -> None:
    timeout = ENA0 + "Transmit time out"
    assert len(read_story([said(timeout, 0), said(timeout, 9)])[0]) == 1
    assert len(read_story([said(timeout, 0), said(timeout, 10.5)])[0]) == 2


def test_flush_ends_a_story_in_the_time_of_the_reader() -> None:
    sequencer = Sequencer(PatternSet())
    # The log's clock may be a day off: only how long we have heard nothing counts.
    assert sequencer.feed(said(ENA0 + "Transmit time out", 86400), 5 * NS_PER_S)[0] == []
    assert sequencer.flush(15 * NS_PER_S) == []
    (event,) = sequencer.flush(16 * NS_PER_S)
    assert event.kind == "nic_tx_timeout"
    assert sequencer.flush(99 * NS_PER_S) == []


def test_a_device_that_complains_for_ever_gives_an_event_a_minute() -> None:
    line = (
        "mtk_soc_eth 1e100000.ethernet eth0: NETDEV WATCHDOG: CPU: 1: transmit queue 4 timed out"
        " 190940 ms"
    )
    events, _ = read_story([said(line, at_s) for at_s in range(0, 600, 5)])
    assert len(events) == 600 * NS_PER_S // (AGE_LIMIT_NS + 5 * NS_PER_S) + 1


def test_intel_hang_its_ring_and_its_reset_are_one_event() -> None:
    (event,), alarms = read_story(dump("intel_ixgbe_hang.txt"))
    assert (event.kind, event.pattern, event.device, event.queue) == (
        "nic_reset",
        "intel.tx_hang",
        "eth3",
        6,
    )
    assert fields(event)["queues"] == [6, 5]
    assert (fields(event)["head_hex"], fields(event)["tail_hex"]) == ("0", "9")
    assert [(alarm.kind, alarm.queue) for alarm in alarms] == [
        ("nic_tx_hang", None),
        ("nic_tx_hang", 6),
        ("nic_tx_hang", 5),
        ("nic_reset", 6),
    ]
    (event,), _ = read_story(dump("intel_e1000e_hang.txt"))
    assert (event.kind, event.device, event.queue) == ("nic_reset", "eno1", 0)
    assert event.lines is not None
    assert "PHY Status" in event.lines
    assert "NIC Link is Up" in event.lines


def test_i40e_timeout_recovery_and_link_are_one_event() -> None:
    (event,), _ = read_story(dump("i40e_tx_timeout.txt"))
    assert (event.kind, event.device, event.queue) == ("nic_reset", "eno1", 31)
    assert fields(event)["recovery_level"] == 1


def test_soft_lockup_takes_its_trace() -> None:
    (event,), alarms = read_story(dump("soft_lockup.txt"))
    assert (event.kind, event.cpu, event.pid, event.comm, event.severity) == (
        "soft_lockup",
        48,
        358270,
        "runc:[1:CHILD]",
        0,
    )
    assert event.lines is not None
    assert "mem_cgroup_nr_lru_pages" in event.lines
    assert alarms == [Alarm("soft_lockup", 48, None, None, True, event.time_ns)]


def test_a_trace_without_end_is_cut_and_counted() -> None:
    lines = [said("watchdog: BUG: soft lockup - CPU#4 stuck for 22s! [java:40646]")] + [
        said(f" frame_{n}+0x1/0x2") for n in range(500)
    ]
    (event,), _ = read_story(lines)
    assert event.lines is not None
    assert event.lines.split("\n")[-2:] == [" frame_59+0x1/0x2", "[440 more lines are left out]"]


def test_rcu_stall_names_the_stalled_cores_and_the_starved_kthread() -> None:
    (event,), alarms = read_story(dump("rcu_stall.txt"))
    assert (event.kind, event.cpu) == ("rcu_stall", 9)
    expected = {
        "cpus": [9, 11],
        "detected_by_cpu": 2,
        "stalled_jiffies": 15002,
        "kthread_starved_cpu": 4,
        "timer_issue_cpu": 4,
    }
    assert expected.items() <= fields(event).items()
    assert [alarm.cpu for alarm in alarms] == [None, 9, 11, 4]


def test_hung_task_takes_its_trace_and_raises_no_alarm() -> None:
    (event,), alarms = read_story(dump("hung_task.txt"))
    assert (event.kind, event.pid, event.comm, alarms) == ("hung_task", 113, "kworker/u32:2", [])
    assert event.lines is not None
    assert "io_schedule" in event.lines


def test_all_calls_that_wait_for_a_file_server_are_one_event_by_server() -> None:
    lines = [
        said(f"nfs: server {name} not responding, still trying", at_s)
        for at_s, name in ((0, "a"), (1, "b"), (2, "a"))
    ]
    silent, alarms = read_story([*lines, said("nfs: server a OK", 5), said("nfs: server a OK", 5)])
    assert [(event.kind, fields(event)["server"], alarms) for event in silent] == [
        ("nfs_server_silent", "a", []),
        ("nfs_server_silent", "b", []),
    ]
    assert fields(silent[0])["line_counts"] == {"nfs.silent": 2, "nfs.answers": 2}
    (answers,), _ = read_story([said("nfs: server a OK", 900), said("nfs: server a OK", 901)])
    assert answers.kind == "nfs_server_answers"


def test_oom_kill_names_victim_invoker_and_memcg() -> None:
    (event,), alarms = read_story(dump("oom_memcg_5.15.txt"))
    assert (event.kind, event.pid, event.comm, alarms) == ("oom_kill", 63214, "python3", [])
    expected = {
        "invoker": "pt_main_thread",
        "constraint": "CONSTRAINT_MEMCG",
        "limit_kb": 1048576,
        "anon_rss_kb": 164992,
    }
    assert expected.items() <= fields(event).items()
    assert str(fields(event)["memcg"]).endswith("kubepods-burstable-pod7.slice")


def test_oom_kill_of_old_kernels_names_the_child_that_died() -> None:
    (event,), _ = read_story(dump("oom_4.14.txt"))
    assert (event.kind, event.pid, event.comm) == ("oom_kill", 97, "mem: child")
    assert {"chosen_pid": 93, "memcg": "/docker/c1", "failures": 39}.items() <= fields(
        event
    ).items()
