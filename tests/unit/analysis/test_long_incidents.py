"""Incidents longer than what is looked at, and longer than the hour that is read at a time."""

import pytest
from tests.drawn_node import DrawnNode, at, drawn_node

from necroscope.analysis import stretches
from necroscope.analysis.engine import diagnose

LEGEND = "x: system  tool[44]  /user.slice/tool.service  main > ksys_ioctl, odd_driver_loop"


def held(core: str) -> DrawnNode:
    return drawn_node(f"core 0: {'.' * len(core)}\ncore 1: {core}\n{LEGEND}")


@pytest.fixture
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour of a hundred seconds, with ten that two of them share."""
    monkeypatch.setattr(stretches, "STRETCH_NS", 100_000_000_000)
    monkeypatch.setattr(stretches, "_MARGIN_NS", 10_000_000_000)


def test_a_core_held_for_five_minutes_is_reported_so() -> None:
    (incident,) = diagnose(held("." * 30 + "x" * 300 + "." * 30)).incidents
    assert "for 300.0 s" in incident.verdict.summary
    assert "for 300.0 s" in incident.verdict.evidence[0].text


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize(("start", "length"), [(90, 30), (20, 250), (98, 4), (60, 45), (195, 20)])
def test_an_incident_over_the_hour_is_one_and_whole(start: int, length: int) -> None:
    core = "." * start + "x" * length + "." * (300 - start - length)
    (incident,) = diagnose(held(core)).incidents
    assert (incident.from_ns, incident.to_ns) == (at(start), at(start + length))
    assert f"for {length}.0 s" in incident.verdict.summary
    assert [episode.kind for episode in incident.episodes if episode.core == 1] == ["saturated"]
    assert f"for {length}.0 s" in next(
        episode.text for episode in incident.episodes if episode.core == 1
    )


@pytest.mark.usefixtures("short_stretches")
def test_incidents_on_both_sides_of_the_hour_stay_two() -> None:
    core = "." * 60 + "x" * 10 + "." * 60 + "x" * 10 + "." * 60
    assert len(diagnose(held(core)).incidents) == 2


@pytest.mark.usefixtures("short_stretches")
def test_the_events_of_both_hours_are_reported_once() -> None:
    node = (
        held("." * 90 + "x" * 60 + "." * 150)
        .event(99, "soft_lockup", cpu=1)
        .event(130, "soft_lockup", cpu=1)
    )
    (incident,) = diagnose(node).incidents
    assert [event.time_ns for event in incident.events] == [at(99), at(130)]


def test_a_walk_every_minute_is_one_incident() -> None:
    (incident,) = diagnose(held(("." * 57 + "xxx") * 6 + "..")).incidents
    assert "every 60 s" in incident.verdict.summary


def test_more_incidents_than_are_looked_at_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("necroscope.analysis.engine._MOST_STRONG", 2)
    report = diagnose(held("." * 30 + "xxxxx" + "." * 50 + "xxxxx" + "." * 90 + "xxxxx" + "." * 30))
    assert len(report.incidents) == 2
    assert any("3 incidents" in note and "--at" in note for note in report.notes)
