"""What a judgement changes in the ledger: decisions without I/O, so that races are tests."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.drawn_node import at
from tests.unit.verdicts.conftest import MakeIncident

from necroscope.analysis.report import Incident
from necroscope.verdicts.changes import Judgement, changes
from necroscope.verdicts.entry import LedgerEntry


def judge(
    known: Sequence[LedgerEntry],
    end_s: float,
    *incidents: Incident,
    from_s: float = 0,
    is_live: bool = True,
) -> list[LedgerEntry]:
    revision = max([one.revision for one in known], default=0)
    return changes(known, Judgement(at(from_s), at(end_s), is_live, incidents), revision)


def states_of(entries: Sequence[LedgerEntry]) -> list[tuple[str, str]]:
    return [(entry.id, entry.state.value) for entry in entries]


def test_what_goes_on_is_opened_and_what_is_quiet_is_closed(incident: MakeIncident) -> None:
    found = judge([], 24, incident(10, 20), incident(2, 8, core=3))
    assert states_of(found) == [("2-core3", "closed"), ("10-core1", "open")]


def test_where_nobody_records_all_is_over(incident: MakeIncident) -> None:
    assert states_of(judge([], 20, incident(10, 20), is_live=False)) == [("10-core1", "closed")]


def test_an_incident_keeps_its_id_while_its_beginning_moves(incident: MakeIncident) -> None:
    known = judge([], 24, incident(10, 24))
    closed = judge(known, 60, incident(9, 40))
    assert states_of(closed) == [("10-core1", "closed")]
    assert (closed[0].incident.from_ns, closed[0].incident.to_ns) == (at(9), at(40))
    assert closed[0].revision > known[0].revision


def test_judging_the_same_stretch_again_changes_nothing(incident: MakeIncident) -> None:
    known = judge([], 60, incident(10, 20), incident(30, 40, core=None))
    assert judge(known, 90, incident(10, 20.5), incident(30, 40, core=None)) == []


def test_the_same_stretch_gives_the_same_ids_without_a_ledger(incident: MakeIncident) -> None:
    found = [incident(10, 20), incident(30, 40, core=None)]
    assert states_of(judge([], 60, *found)) == states_of(judge([], 60, *reversed(found)))


def test_a_verdict_that_saw_only_the_end_does_not_replace_the_first(incident: MakeIncident) -> None:
    known = judge([], 100, incident(10, 100, cause="rt-hog"))
    met = judge(known, 300, incident(50, 250, cause="unknown"), from_s=50)
    assert met[0].incident.verdict.cause == "rt-hog"
    assert met[0].incident.to_ns == at(250)


def test_a_late_reset_makes_a_closed_incident_news(incident: MakeIncident) -> None:
    known = judge([], 60, incident(10, 20))
    assert states_of(judge(known, 63, incident(10, 20, events=1))) == [("10-core1", "closed")]


def test_another_verdict_on_the_same_incident_is_news(incident: MakeIncident) -> None:
    known = judge([], 24, incident(10, 24, cause="unknown"))
    assert judge(known, 26, incident(10, 24, cause="rt-hog"))[0].incident.verdict.cause == "rt-hog"


def test_two_that_turn_out_to_be_one_are_merged_into_the_first(incident: MakeIncident) -> None:
    known = judge([], 40, incident(10, 15), incident(20, 30))
    merged = judge(known, 60, incident(10, 30))
    assert states_of(merged) == [("10-core1", "closed"), ("20-core1", "merged")]
    assert merged[1].merged_into == "10-core1"


def test_what_was_open_and_is_part_of_another_core_is_merged(incident: MakeIncident) -> None:
    known = judge([], 24, incident(12, 24, core=3))
    found = judge(known, 60, incident(10, 40, core=1, cores=(1, 3)))
    assert states_of(found) == [("10-core1", "closed"), ("12-core3", "merged")]


def test_what_was_opened_is_closed_though_no_analysis_sees_it_any_more(
    incident: MakeIncident,
) -> None:
    known = judge([], 24, incident(12, 24))
    assert judge(known, 26) == []
    assert states_of(judge(known, 40)) == [("12-core1", "closed")]


def test_what_was_merged_does_not_come_back(incident: MakeIncident) -> None:
    known = {one.id: one for one in judge([], 40, incident(10, 15), incident(20, 30))}
    known |= {one.id: one for one in judge(list(known.values()), 60, incident(10, 30))}
    assert judge(list(known.values()), 90, incident(10, 30)) == []


def test_what_was_seen_to_go_on_stays_open_though_it_was_not_judged_again(
    incident: MakeIncident,
) -> None:
    known = judge([], 24, incident(12, 24))
    seen = Judgement(at(0), at(60), True, (incident(10, 50, core=3),), (incident(12, 59),))
    found = {one.id: one for one in changes(known, seen, known[0].revision)}
    assert states_of(list(found.values())) == [("10-core3", "closed"), ("12-core1", "open")]
    assert found["12-core1"].incident.to_ns == at(59)


def test_who_waits_for_something_else_at_the_same_time_is_another_incident(
    incident: MakeIncident,
) -> None:
    lock = replace(incident(10, 20, core=None), subject="rtnl_mutex")
    fault = replace(incident(12, 22, core=None), subject="handle_userfault", id="12-node-2")
    known = judge([], 60, lock, fault)
    assert [state for _, state in states_of(known)] == ["closed", "closed"]
    assert judge(known, 90, lock, fault) == []


def test_a_ledger_that_knows_no_subjects_is_still_read(incident: MakeIncident) -> None:
    (entry,) = judge([], 60, incident(10, 20, core=None))
    old = json.loads(json.dumps(entry.as_json()))
    del old["incident"]["subject"]
    assert LedgerEntry.from_json(old) == entry
    del old["incident"]["core"]
    with pytest.raises(KeyError):
        LedgerEntry.from_json(old)
