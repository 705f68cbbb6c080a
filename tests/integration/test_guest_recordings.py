"""Recordings from other kernels, made by scripts/test-kernels: the same verdict on every machine,
without root.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.kernels.sets import story

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident
from necroscope.store.query import Store

GUESTS = Path(__file__).parents[1] / "data/guests"
RECORDINGS = sorted(path.parent for path in GUESTS.glob("*/truth.json"))


def summary_of(incident: Incident) -> dict[str, Any]:
    culprit, origin = incident.verdict.culprit, incident.verdict.origin
    return {
        "core": incident.core,
        "cause": incident.verdict.cause,
        "culprit": culprit.comm if culprit else None,
        "unit": culprit.unit if culprit else None,
        "origin": origin.name if origin else None,
    }


@pytest.mark.parametrize("directory", RECORDINGS, ids=lambda path: path.name)
def test_the_verdict_on_a_guests_recording_is_the_truth(directory: Path) -> None:
    truth = json.loads((directory / "truth.json").read_text())
    place = truth["verdict"]["cause"], truth["verdict"]["core"]
    found = [
        one
        for one in diagnose(Store.open(directory)).incidents
        if (one.verdict.cause, one.core) == place
    ]
    assert len(found) == 1
    assert truth["verdict"].items() <= summary_of(found[0]).items()
    assert found[0].verdict.confidence >= 0.5 or truth["verdict"]["cause"] == "unknown"


@pytest.mark.parametrize("directory", RECORDINGS, ids=lambda path: path.name)
def test_the_drivers_own_lines_are_joined_to_the_core_by_its_interrupt(directory: Path) -> None:
    truth = json.loads((directory / "truth.json").read_text())
    events = [
        event
        for one in diagnose(Store.open(directory)).incidents
        for event in one.events
        if event.kind.startswith("nic_")
    ]
    assert {event.core for event in events} == (
        {truth["verdict"]["core"]} if truth["resets"] else set()
    )
    rows = Store.open(directory).rows("events", 0, 1 << 62).to_pylist()
    assert all(row["by_kernel"] for row in rows if row["kind"].startswith("nic_"))


def test_the_core_of_the_watchdogs_timer_is_not_taken_for_the_queues() -> None:
    (line,) = (
        row
        for row in Store.open(GUESTS / "6.12-driver-reset").rows("events", 0, 1 << 62).to_pylist()
        if row["queue"] == 0
    )
    assert "CPU: 0" in line["message"]
    incidents = diagnose(Store.open(GUESTS / "6.12-driver-reset")).incidents
    assert [
        event.core for one in incidents for event in one.events if event.kind == "nic_reset"
    ] == [1]


def test_a_waiting_ksoftirqd_is_a_false_alarm_where_softirqs_run_without_it() -> None:
    store = Store.open(GUESTS / "6.12-no-reset")
    waits_ns = [
        row["delay_ns"] or 0 for row in store.rows("runqueue", 0, 1 << 62, cpus=[1]).to_pylist()
    ]
    assert sum(waits_ns) > 5e9
    assert not [
        one for one in diagnose(store).incidents if one.verdict.cause == "irq-core-collision"
    ]


@pytest.mark.parametrize(
    "directory", sorted(GUESTS.glob("5.10-story*")), ids=lambda path: path.name
)
def test_the_story_is_told_from_the_leaking_unit_to_the_dead_job(directory: Path) -> None:
    """The walk's reader, the unit that leaks, the device that was reset, and the job that died."""
    first_ns, last_ns = Store.open(directory).span()
    found = story.named(directory, first_ns, last_ns + 1)
    assert found["cause"] == story.CAUSE
    assert (found["core"], found["device"]) == (story.CORE, "eth0")
    assert (found["reader"], found["reader_unit"]) == ("cadvisor", "cadvisor.service")
    assert found["origin"] == "vendor-agent.service"
    assert found["job"] == ["machine", story.CAUSE, "cadvisor"]


def test_recordings_are_small_and_say_where_they_come_from() -> None:
    assert RECORDINGS
    readme = (GUESTS / "README.md").read_text("utf-8")
    for directory in RECORDINGS:
        assert f"`{directory.name}`" in readme
        assert sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) < 700_000


def test_time_that_both_cores_of_a_guest_lose_at_once_is_blamed_on_no_task() -> None:
    found = diagnose(Store.open(GUESTS / "6.12-no-reset")).incidents
    assert "softirq-blackout" not in [one.verdict.cause for one in found]
