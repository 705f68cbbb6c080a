"""What the network lost, by its own counters: as evidence of an incident, and as one of its own."""

import json
from typing import Any

import pytest
from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident

HELD = """
    core 0:  ..............................................
    core 1:  ......................kkkkkk..................
    k: system  reader[8]  /  main > ksys_read, some_walk
    """
QUIET = "core 0: " + "." * 90 + "\ncore 1: " + "." * 90


def incidents_of(node: DrawnNode) -> list[Incident]:
    return list(diagnose(node).incidents)


def texts_of(incident: Incident) -> str:
    return " | ".join(item.text for item in incident.verdict.evidence)


def nic(node: DrawnNode, second: float, counter: str, value: int, **more: Any) -> DrawnNode:
    named = {"device": "eth0", "driver": "ena", "firmware": "2.11.0g"} | more
    return node.add("nics", second, counter=counter, value=value, **named)


def with_traffic(node: DrawnNode, seconds: int, **of_second: dict[int, int]) -> DrawnNode:
    """Segments of every second, and what else was counted in some of them."""
    for second in range(seconds):
        counted = {name: values.get(second, 0) for name, values in of_second.items()}
        node.add("network", second + 1, tcp_out_segments=5000, tcp_in_segments=5000, **counted)
    return node


def test_what_a_reset_did_to_traffic_is_evidence_of_it() -> None:
    node = with_traffic(
        drawn_node(HELD), 46, tcp_retransmits={27: 4000, 28: 900}, tcp_timeouts={28: 300}
    )
    reset = json.dumps({"napi_scheduled": 1, "napi_us": 5_500_000})
    node.event(27.5, "nic_reset", "ena eth0: reset", cpu=1, device="eth0", queue=1, fields=reset)
    [incident] = incidents_of(node.delay(27, 1, 5.0))
    assert "4,900 TCP segments sent again" in texts_of(incident)
    assert "300 retransmission timers fired" in texts_of(incident)


def test_retransmits_that_are_usual_are_no_evidence() -> None:
    usual = dict.fromkeys(range(46), 400)
    node = with_traffic(drawn_node(HELD), 46, tcp_retransmits=usual).delay(27, 1, 5.0)
    [incident] = incidents_of(node)
    assert "sent again" not in texts_of(incident)


def test_a_watchdog_that_only_its_counter_tells_is_an_incident_with_its_queue() -> None:
    node = drawn_node(HELD)
    for queue in (0, 1):
        node.add(
            "interrupts",
            1,
            cpu=queue,
            irq=str(60 + queue),
            action=f"eth0-Tx-Rx-{queue}",
            device="eth0",
            queue=queue,
            affinity=str(queue),
            count=50,
        )
    nic(nic(node, 2, "tx-1/tx_timeout", 0), 27, "tx-1/tx_timeout", 1)
    [incident] = incidents_of(node.delay(27, 1, 5.0))
    assert incident.core == 1
    [event] = incident.events
    assert (event.kind, event.queue) == ("nic_tx_timeout", 1)
    assert "the log does not mention it" in event.message


def test_a_watchdog_that_the_log_tells_is_reported_once() -> None:
    node = nic(nic(drawn_node(QUIET), 2, "tx-1/tx_timeout", 0), 22, "tx-1/tx_timeout", 1)
    node.event(20, "nic_tx_timeout", "NETDEV WATCHDOG: eth0", device="eth0", queue=1)
    [incident] = incidents_of(node)
    assert len(incident.events) == 1


@pytest.mark.parametrize(
    ("counter", "cause"),
    [("missing_tx_cmpl", "nic-device-fault"), ("suspected_poll_starvation", "unknown")],
)
def test_the_drivers_own_counters_say_whose_fault_a_reset_was(counter: str, cause: str) -> None:
    node = nic(nic(drawn_node(QUIET), 2, counter, 0), 22, counter, 1)
    node.event(20, "nic_reset", "ena eth0: reset", cpu=1, device="eth0", queue=1)
    [incident] = incidents_of(node)
    assert incident.verdict.cause == cause


def test_an_allowance_that_is_used_up_is_named_and_blames_no_core() -> None:
    node = nic(drawn_node(QUIET), 2, "bw_out_allowance_exceeded", 100)
    for read in range(6):
        nic(node, 20 + 5 * read, "bw_out_allowance_exceeded", 1000 * (read + 1))
    [incident] = incidents_of(
        with_traffic(node, 90, tcp_retransmits=dict.fromkeys(range(20, 45), 300))
    )
    assert incident.verdict.cause == "network-allowance"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm is None
    assert "bw_out_allowance_exceeded" in incident.verdict.summary


def test_a_burst_that_is_shaped_for_a_moment_is_no_incident() -> None:
    node = nic(drawn_node(QUIET), 2, "bw_out_allowance_exceeded", 100)
    nic(node, 22, "bw_out_allowance_exceeded", 4000)
    assert incidents_of(node) == []


def test_retransmits_alone_are_no_incident() -> None:
    """What looks like a loss of this node is mostly one of the network's."""
    node = with_traffic(drawn_node(QUIET), 90, tcp_retransmits=dict.fromkeys(range(30, 60), 900))
    assert incidents_of(node) == []


def test_a_full_table_of_connections_is_named() -> None:
    node = with_traffic(drawn_node(QUIET), 90, conntrack_drops=dict.fromkeys(range(30, 50), 40))
    node.event(31, "conntrack_full", "nf_conntrack: table full, dropping packet")
    [incident] = incidents_of(node)
    assert incident.verdict.cause == "network-table-drops"
    assert incident.core is None


def test_an_overflow_of_neighbours_beside_a_held_core_accuses_neither_of_the_other() -> None:
    node = drawn_node(HELD).event(25, "neighbour_overflow", "arp_cache: neighbor table overflow!")
    causes = {one.core: one.verdict.cause for one in incidents_of(node)}
    assert causes == {1: "unknown", None: "network-table-drops"}


def test_lookups_that_race_for_their_entry_are_named() -> None:
    node = with_traffic(
        drawn_node(QUIET), 90, conntrack_insert_failed=dict.fromkeys(range(30, 50), 6)
    )
    [incident] = incidents_of(node)
    assert incident.verdict.cause == "network-table-drops"
    assert "race" in incident.verdict.summary


def test_one_lost_race_is_no_incident() -> None:
    node = with_traffic(drawn_node(QUIET), 90, conntrack_insert_failed={30: 6})
    assert incidents_of(node) == []
