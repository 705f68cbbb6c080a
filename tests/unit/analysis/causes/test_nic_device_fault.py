"""A device that failed beside cores that were well, and resets that a starved core caused."""

import json

from tests.drawn_node import DrawnNode, at, drawn_node

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident
from necroscope.model.reading import Gap

QUIET = "core 0: ..............................\ncore 1: .............................."


def reset(node: DrawnNode, kind: str = "nic_reset", **fields: object) -> DrawnNode:
    return node.event(
        20,
        kind,
        "ena 0000:20:03.0 eth0: Trigger reset is on",
        cpu=1,
        device="eth0",
        queue=3,
        fields=json.dumps(fields),
    )


def incident_of(node: DrawnNode) -> Incident:
    (incident,) = diagnose(node.delay(19, 1, 0.0004)).incidents
    return incident


def test_a_reset_without_waiting_napi_on_a_core_that_is_well_is_the_devices() -> None:
    incident = incident_of(reset(drawn_node(QUIET), napi_scheduled=0))
    assert incident.verdict.cause == "nic-device-fault"
    assert incident.verdict.confidence >= 0.9
    assert incident.verdict.origin is not None
    assert (incident.verdict.origin.kind, incident.verdict.origin.name) == ("device", "eth0")


def test_a_lost_keep_alive_is_a_word_of_the_device() -> None:
    assert (
        incident_of(reset(drawn_node(QUIET), "nic_keepalive_timeout")).verdict.cause
        == "nic-device-fault"
    )


def test_a_reset_with_napi_waiting_is_not_the_devices() -> None:
    incident = incident_of(reset(drawn_node(QUIET), napi_scheduled=1, napi_us=6_596_000))
    assert incident.verdict.cause == "unknown"
    assert "NAPI was scheduled and did not run" in incident.alternatives[0].why_not


def test_a_reset_beside_a_held_core_is_not_the_devices() -> None:
    node = drawn_node("""
        core 0:  ..............................
        core 1:  .............kkkkkkk..........
        k: system  reader[8]  /  main > ksys_read, some_walk
        """)
    assert incident_of(reset(node)).verdict.cause != "nic-device-fault"


def test_a_reset_that_names_no_queue_is_the_devices_if_all_cores_were_well() -> None:
    node = drawn_node(QUIET).event(
        20, "nic_reset", "The number of lost tx completions is above the threshold", device="eth0"
    )
    assert incident_of(node).verdict.cause == "nic-device-fault"


def test_a_reset_that_names_no_queue_is_not_blamed_on_the_device_where_waits_were_not_measured() -> (
    None
):
    node = drawn_node(QUIET).event(
        20, "nic_reset", "The number of lost tx completions is above the threshold", device="eth0"
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "unknown"


def timed_out(node: DrawnNode) -> DrawnNode:
    return node.event(
        25,
        "nic_tx_timeout",
        "NETDEV WATCHDOG: eth0: transmit queue 1 timed out 5000 ms",
        cpu=1,
        device="eth0",
    )


def without(node: DrawnNode, tables: tuple[str, ...], from_s: float, to_s: float) -> DrawnNode:
    """As if these tables had not been read for a while."""
    drawn = node._drawn()
    for table in tables:
        drawn[table] = [row for row in drawn[table] if not from_s < (row[0] - at(0)) / 1e9 < to_s]
        node.added.setdefault("gaps", []).append(
            Gap(table, at(from_s), at(to_s), "the recorder was stopped").row()
        )
    return node


def test_a_reset_of_a_core_that_was_well_is_the_devices_though_no_delay_was_measured() -> None:
    (incident,) = diagnose(timed_out(drawn_node(QUIET))).incidents
    assert incident.verdict.cause == "nic-device-fault"


def test_inside_a_gap_no_core_was_well() -> None:
    (incident,) = diagnose(
        timed_out(without(drawn_node(QUIET), ("cores", "softirqs"), 14, 27))
    ).incidents
    assert incident.verdict.cause == "unknown"
    assert any("gap" in item.text for item in incident.verdict.against)


def test_where_neither_delays_nor_counts_of_softirqs_were_read_nobody_knows_that_they_ran() -> None:
    (incident,) = diagnose(
        timed_out(without(drawn_node(QUIET), ("softirqs",), 14, 27).delay(5, 1, 0.0004))
    ).incidents
    assert incident.verdict.cause == "unknown"


def test_inside_a_gap_not_all_cores_were_well() -> None:
    node = drawn_node(QUIET).event(
        20, "nic_reset", "The number of lost tx completions is above the threshold", device="eth0"
    )
    assert incident_of(without(node, ("cores",), 9, 18)).verdict.cause == "unknown"


def test_what_the_device_itself_says_does_not_claim_that_a_core_had_time_inside_a_gap() -> None:
    node = reset(without(drawn_node(QUIET), ("cores", "softirqs"), 8, 22), "nic_keepalive_timeout")
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "nic-device-fault"
    assert "had time" not in incident.verdict.summary
