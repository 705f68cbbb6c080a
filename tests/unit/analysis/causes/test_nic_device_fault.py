"""A device that failed beside cores that were well, and resets that a starved core caused."""

import json

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident

QUIET = "core 0: ..............................\ncore 1: .............................."


def reset(node: DrawnNode, kind: str = "nic_reset", **fields: object) -> DrawnNode:
    return node.event(
        20, kind, "ena 0000:20:03.0 eth0: Trigger reset is on", cpu=1, device="eth0", queue=3, fields=json.dumps(fields)
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
    assert incident_of(reset(drawn_node(QUIET), "nic_keepalive_timeout")).verdict.cause == "nic-device-fault"


def test_a_reset_with_napi_waiting_is_not_the_devices() -> None:
    incident = incident_of(reset(drawn_node(QUIET), napi_scheduled=1, napi_us=6_596_000))
    assert incident.verdict.cause == "unknown"
    assert "NAPI was scheduled and did not run" in incident.alternatives[0].why_not


def test_a_reset_beside_a_held_core_is_not_the_devices() -> None:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  .............kkkkkkk..........
        k: system  reader[8]  /  main > ksys_read, some_walk
        """
    )
    assert incident_of(reset(node)).verdict.cause != "nic-device-fault"


def test_a_reset_that_names_no_queue_is_the_devices_if_all_cores_were_well() -> None:
    node = drawn_node(QUIET).event(20, "nic_reset", "The number of lost tx completions is above the threshold", device="eth0")
    assert incident_of(node).verdict.cause == "nic-device-fault"


def test_a_reset_that_names_no_queue_is_not_blamed_on_the_device_where_waits_were_not_measured() -> None:
    node = drawn_node(QUIET).event(20, "nic_reset", "The number of lost tx completions is above the threshold", device="eth0")
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "unknown"
