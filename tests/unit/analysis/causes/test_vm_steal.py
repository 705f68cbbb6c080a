"""Stolen time is nobody's work in this machine."""

from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose

STOLEN = """
    core 0:  ....................vvvvvvvv............
    core 1:  ....................vvvvvvvv............
    v: user+steal  python[800]  /  main
"""


def test_stolen_time_is_the_hosts() -> None:
    found = diagnose(drawn_node(STOLEN)).incidents
    assert found
    assert {incident.verdict.cause for incident in found} == {"vm-steal"}
    assert found[0].verdict.origin is not None
    assert found[0].verdict.origin.kind == "host"
    assert found[0].verdict.culprit is not None
    assert found[0].verdict.culprit.comm is None


def test_what_is_stolen_all_the_time_is_how_that_machine_is() -> None:
    assert not diagnose(drawn_node(STOLEN.replace(".", "v"))).incidents


def test_a_core_in_system_mode_is_not_stolen() -> None:
    found = diagnose(drawn_node(STOLEN.replace("user+steal", "system"))).incidents
    assert "vm-steal" not in {incident.verdict.cause for incident in found}


def test_twice_the_usual_steal_is_not_named() -> None:
    picture = (
        STOLEN.replace(".", "w").replace("user+steal", "idle+steal")
        + "    w: user+idle+iowait+steal  python[800]  /  main\n"
    )
    assert not diagnose(drawn_node(picture)).incidents


def test_what_is_stolen_now_from_one_core_now_from_another_is_one_incident() -> None:
    picture = """
    core 0:  ....................vvv.......vvv.....vvvvv..........
    core 1:  ..........................vvv.........vvvvv..........
    v: user+steal  python[800]  /  main
"""
    (incident,) = diagnose(drawn_node(picture)).incidents
    assert incident.verdict.cause == "vm-steal"
