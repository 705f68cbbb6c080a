"""An incident in the ledger is the incident: nothing of it is lost, nothing else gets in."""

import json

import pytest
from tests.unit.verdicts.conftest import MakeIncident

from necroscope.verdicts.entry import IncidentState, LedgerEntry, bounded


def test_an_entry_survives_json_to_the_nanosecond(incident: MakeIncident) -> None:
    entry = LedgerEntry(IncidentState.OPEN, 7, incident(events=2, cores=(1, 3)))
    assert LedgerEntry.from_json(json.loads(json.dumps(entry.as_json()))) == entry


@pytest.mark.parametrize(
    ("part", "value"),
    [("state", "broken"), ("revision", "7"), ("revision", True), ("incident", []), ("id", 3)],
)
def test_what_is_not_an_entry_is_refused(incident: MakeIncident, part: str, value: object) -> None:
    content = json.loads(json.dumps(LedgerEntry(IncidentState.OPEN, 7, incident()).as_json()))
    (content["incident"] if part == "id" else content)[part] = value
    with pytest.raises((TypeError, ValueError)):
        LedgerEntry.from_json(content)


def test_a_report_that_is_too_long_loses_events_and_keeps_its_verdict(
    incident: MakeIncident,
) -> None:
    long = incident(events=2000)
    kept = bounded(long)
    assert len(kept.events) == 200
    assert kept.verdict == long.verdict
    assert bounded(kept) == kept
