"""Each pattern knows its line, in every wording of every version, and no other's."""

import re
from pathlib import Path

import pytest

from necroscope.sources.kernel_log.line import LogLine
from necroscope.sources.kernel_log.pattern import COLUMNS, Role
from necroscope.sources.kernel_log.patterns import PATTERNS, PatternSet
from necroscope.sources.kernel_log.sequence import Sequence

ENA = "ena 0000:00:05.0 ens5: "
EXAMPLES = [
    tuple(line.split("\t", 1))
    for line in (
        (Path(__file__).parents[3] / "data/kernel_log/examples.tsv")
        .read_text()
        .rstrip("\n")
        .split("\n")
    )
]
DULL = [
    "pci 0000:00:01.0: BAR 0 [mem 0x4000000000-0x400007ffff 64bit]",
    (
        "EXT4-fs (vda): mounted filesystem 00000000-0000-0000-0000-000000000000 r/w without"
        " journal. Quota mode: none."
    ),
    "pcieport 0000:00:1c.0: pciehp: Slot(0): Link Down",
    "ata1: SATA link down (SStatus 0 SControl 300)",
    "clocksource: tsc: mask: 0xffffffffffffffff max_cycles: 0x1cd4",
    "rcu: Hierarchical RCU implementation.",
    "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
    'audit: type=1400 audit(1700000000.123:4): apparmor="STATUS"',
    "ena 0000:00:05.0: ENA device version: 0.10",
    "",
    "   ",
]


@pytest.mark.parametrize(("pattern_id", "text"), EXAMPLES)
def test_a_line_is_known_by_its_own_pattern_and_no_other(pattern_id: str, text: str) -> None:
    assert [pattern.id for pattern in PATTERNS if pattern.regex.search(text)] == [pattern_id]


@pytest.mark.parametrize(("pattern_id", "text"), EXAMPLES)
def test_the_cheap_first_test_lets_the_line_through(pattern_id: str, text: str) -> None:
    found = PatternSet().find(text)
    assert found is not None
    assert found[0].id == pattern_id


@pytest.mark.parametrize("text", DULL)
def test_a_dull_line_means_nothing(text: str) -> None:
    assert PatternSet().find(text) is None


def test_every_pattern_has_an_example_and_a_way_to_be_found() -> None:
    assert {pattern.id for pattern in PATTERNS} == {pattern_id for pattern_id, _ in EXAMPLES}
    assert len({pattern.id for pattern in PATTERNS}) == len(PATTERNS)
    assert [pattern.id for pattern in PATTERNS if not pattern.keywords and not pattern.prefix] == []


def test_kinds_are_words_and_parts_belong_to_a_family() -> None:
    for pattern in PATTERNS:
        assert re.fullmatch(r"[a-z][a-z_]+", pattern.kind)
        assert pattern.role is Role.OPENS or pattern.family is not None
        assert not pattern.weight or pattern.family is not None


def test_names_of_second_spellings_are_names_of_first_ones() -> None:
    for pattern in PATTERNS:
        for name in pattern.regex.groupindex:
            base, _, spelling = name.partition("__")
            assert not spelling or base in pattern.regex.groupindex


def caught(text: str) -> dict[str, object]:
    found = PatternSet().find(text)
    assert found is not None
    line = LogLine(1, 1, 3, 0, True, text)
    sequence = Sequence(line, found[0])
    sequence.add(line, *found)
    event = sequence.event()
    return {name: getattr(event, name) for name in COLUMNS} | {"fields": event.fields or "{}"}


def test_watchdog_cpu_is_where_the_timer_ran_not_the_starved_core() -> None:
    event = caught(
        "ena 0000:90:00.0 eth0: NETDEV WATCHDOG: CPU: 56: transmit queue 11 timed out 5340 ms"
    )
    assert (event["cpu"], event["device"], event["queue"]) == (None, "eth0", 11)
    assert '"timer_cpu":56' in str(event["fields"])


def test_comm_with_colon_and_bracket_is_taken_whole() -> None:
    event = caught("watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [runc:[1:CHILD]:358270]")
    assert (event["cpu"], event["pid"], event["comm"]) == (3, 358270, "runc:[1:CHILD]")
    assert (
        caught("INFO: task kworker/u8:0:5 blocked for more than 122 seconds.")["comm"]
        == "kworker/u8:0"
    )


def test_virtio_watchdog_names_the_interface_not_the_bus() -> None:
    assert (
        caught(
            "virtio_net virtio1 enp1s0: NETDEV WATCHDOG: CPU: 0: transmit queue 0 timed out 9800 ms"
        )["device"]
        == "enp1s0"
    )


def test_missed_completions_give_queue_and_cpu_in_the_printed_order() -> None:
    event = caught(
        ENA
        + "[2/2] qid: 3, highest TX completion pending time (msec): 9, napi sched changes: 0, napi"
        " CPU: 17"
    )
    assert (event["queue"], event["cpu"]) == (3, 17)


def test_lost_completions_of_2_17_have_queue_and_cpu_swapped() -> None:
    event = caught(ENA + "[2/2] qid: 17, napi CPU: 3")
    assert (event["queue"], event["cpu"]) == (3, 17)


def test_a_pool_of_many_cores_is_no_core() -> None:
    assert (
        caught("BUG: workqueue lockup - pool cpus=2 node=0 flags=0x0 nice=-20 stuck for 58s!")[
            "cpu"
        ]
        == 2
    )
    assert (
        caught("BUG: workqueue lockup - pool cpus=0-3 flags=0x4 nice=0 stuck for 34s!")["cpu"]
        is None
    )


def test_memcg_of_a_kill_is_the_one_whose_limit_was_met() -> None:
    event = caught(next(text for pattern_id, text in EXAMPLES if pattern_id == "oom.constraint"))
    assert (event["pid"], event["comm"]) == (461754, "a,b")
    assert '"memcg":"/a"' in str(event["fields"])


def test_the_whole_table_of_known_lines_is_there() -> None:
    known = """
        ena.tx_q_paused ena.napi_starved ena.tx_timeout_old ena.tx_not_completed ena.new_missed ena.lost_tx
        ena.keepalive ena.reset_start ena.stat_dump ena.reset_done ena.reset_fail ena.msix netdev.watchdog_old
        netdev.watchdog_new mlx5.tx_timeout mlx5.tx_timeout_q mlx5.health i40e.tx_timeout intel.recovery ice.tx_timeout
        intel.tx_hang intel.reset gve.tx_timeout virtio.tx_timeout bnxt.tx_timeout vmxnet3.hang lockup.soft lockup.hard
        rcu.self rcu.other rcu.kthread_starved hung_task wq.lockup wq.hog clocksource nohz perf.slow hrtimer.slow
        rt.throttle oom.invoked oom.constraint oom.killed oom.killed_old oom.memcg_limit_old oom.memcg_usage
        nvme.timeout nvme.down ext4.error
    """
    assert len(known.split()) == 48
    assert set(known.split()) <= {pattern.id for pattern in PATTERNS}
