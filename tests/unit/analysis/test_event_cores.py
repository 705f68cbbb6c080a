"""Resets are joined to the core that polls the queue, for every text that ENA has had."""

import pytest
from tests.drawn_node import drawn_node
from tests.logged_events import CAPTURES, captured, event_rows
from tests.reset_node import ENA, NODE, RESET, node_with, only_incident

from necroscope.analysis.event_cores import BY_DRIVER, BY_EPISODE, BY_QUEUE


@pytest.mark.parametrize(
    ("lines", "joined_by"),
    [
        # 2.17.0 names the core itself.
        (
            [
                ENA + "TX q 5 is paused for too long (threshold 5000000). usecs since napi 6596000."
                " napi scheduled: 1. napi CPU: 3. msecs since interrupt: 6590",
                ENA + "napi handler hasn't been called for a long time but is scheduled",
            ],
            BY_DRIVER,
        ),
        # 2.7.2 to 2.16 and in-tree from 6.9 on: queue only.
        (
            [
                ENA
                + "TX q 5 is paused for too long (threshold 5000000). Time since last napi 6596000"
                " usec. napi scheduled: 1",
                ENA + "napi handler hasn't been called for a long time but is scheduled",
            ],
            BY_QUEUE,
        ),
        # 2.5 to 2.7.1: one line for each packet.
        (
            [
                ENA + "Found a Tx that wasn't completed on time, qid 5, index 0. 5756000 usecs have"
                " passed since last napi execution. Missing Tx timeout value 5000 msecs"
            ]
            * 5,
            BY_QUEUE,
        ),
        # 1.x: says nothing of queue or core.
        ([ENA + "Transmit time out"], BY_EPISODE),
        # Any driver with new kernels: the CPU there ran the watchdog's timer and is not the starved
        # one.
        (
            ["ena 0000:20:03.0 eth0: NETDEV WATCHDOG: CPU: 0: transmit queue 5 timed out 5340 ms"],
            BY_QUEUE,
        ),
    ],
    ids=["2.17", "2.11", "2.5", "1.x", "watchdog"],
)
def test_a_reset_is_joined_to_the_core_that_polls_the_queue(
    lines: list[str], joined_by: str
) -> None:
    incident = only_incident(node_with(*lines, *RESET))
    assert incident.core == 3
    assert [(event.kind, event.core, event.joined_by) for event in incident.events] == [
        ("nic_reset", 3, joined_by)
    ]


# What each capture names, the core that polls its queue, and how it is joined to that core.
JOINED = [
    ("ena_1.5.0_transmit_time_out.txt", "ens5", 3, 3, BY_QUEUE),
    ("ena_2.2.10_lost_completions.txt", "eth0", 0, 3, BY_QUEUE),
    ("ena_2.5.0_lost_completions.txt", "ens5", 2, 3, BY_QUEUE),
    ("ena_2.8.0_lost_completions.txt", "eth1", 4, 3, BY_QUEUE),
    ("ena_2.11.0_poll_starvation.txt", "eth0", 5, 3, BY_QUEUE),
    # The watchdog's line names core 56, where its timer ran.
    ("ena_2.13.1_poll_starvation.txt", "eth0", 11, 3, BY_QUEUE),
    ("ena_2.16.1_lost_completions.txt", "ens5", 9, 3, BY_QUEUE),
    ("ena_2.17.0_poll_starvation.txt", "ens5", 6, 22, BY_DRIVER),
    ("ena_2.17.0_lost_completions.txt", "ens5", 3, 17, BY_DRIVER),
    # A lost keep-alive is of no queue.
    ("ena_2.13.1_keepalive_failed.txt", "ens5", None, 3, BY_EPISODE),
]


@pytest.mark.parametrize(
    ("capture", "device", "queue", "core", "joined_by"), JOINED, ids=[name for name, *_ in JOINED]
)
def test_every_text_of_the_driver_is_joined_to_its_core(
    capture: str, device: str, queue: int | None, core: int, joined_by: str
) -> None:
    node = drawn_node(NODE.replace("core 3:", f"core {core}:"))
    for number, cpu in ((queue or 0, core), ((queue or 0) + 1, 0)):
        values = {
            "irq": str(30 + number),
            "action": f"{device}-Tx-Rx-{number}",
            "device": device,
            "queue": number,
        }
        node.add("interrupts", 10, cpu=cpu, count=900, **values)
    node.added["events"] = event_rows(captured(capture, 19))
    incident = only_incident(node)
    assert incident.core == core
    assert [
        (event.kind, event.core, event.queue, event.joined_by) for event in incident.events
    ] == [("nic_reset", core, queue, joined_by)]


def test_no_capture_is_left_out() -> None:
    assert {name for name, *_ in JOINED} == {path.name for path in CAPTURES.glob("ena_*.txt")}


def test_numbers_that_the_driver_swapped_are_put_right() -> None:
    # ENA 2.17.0 prints (cpu, qid) into "qid: %d, napi CPU: %d".
    lines = [
        ENA + "[1/2] Lost TX completions are above threshold (156 > 128), completion timeout: 5000"
        " (msec), 6590 msecs since interrupt, 6596 msecs since napi, qid: 5",
        ENA + "[2/2] qid: 3, napi CPU: 5",
    ]
    incident = only_incident(node_with(*lines, *RESET))
    assert incident.core == 3
    assert incident.events[0].queue == 5


def test_a_forged_line_is_no_event() -> None:
    node = node_with(*RESET)
    node.added["events"] = [(*row[:9], False, None, *row[11:]) for row in node.added["events"]]
    assert not only_incident(node).events


def test_a_line_that_root_wrote_into_the_log_counts_less() -> None:
    node = node_with(*RESET)
    node.added["events"] = [(*row[:9], False, *row[10:]) for row in node.added["events"]]
    incident = only_incident(node)
    assert incident.events
    assert any("not written by the kernel itself" in item.text for item in incident.verdict.against)
