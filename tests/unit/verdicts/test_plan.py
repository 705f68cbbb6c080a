"""When a candidate is judged: once when it is over, earlier if it goes on, again if more came."""

from tests.drawn_node import at
from tests.unit.verdicts.conftest import MakeIncident

from necroscope.analysis.engine import IncidentCandidate
from necroscope.verdicts.entry import IncidentState, LedgerEntry
from necroscope.verdicts.plan import JudgingPlan


def candidate(
    from_s: float, to_s: float, core: int | None = 1, events: int = 0
) -> IncidentCandidate:
    return IncidentCandidate(at(from_s), at(to_s), core, events, is_strong=True)


def judge(plan: JudgingPlan, one: IncidentCandidate, end_s: float, *, is_live: bool = True) -> bool:
    is_due = plan.is_due(one, at(end_s), is_live=is_live)
    if is_due:
        plan.note(one, at(end_s), is_live=is_live)
    return is_due


def test_a_short_one_waits_until_it_is_over_and_is_judged_once() -> None:
    plan = JudgingPlan()
    assert not judge(plan, candidate(10, 14), 15)
    assert plan.is_waiting
    assert judge(plan, candidate(10, 14), 20)
    assert not judge(plan, candidate(10, 14), 26)


def test_one_that_goes_on_is_judged_early_then_ever_more_seldom() -> None:
    plan = JudgingPlan()
    ends = [end for end in range(11, 400, 3) if judge(plan, candidate(10, end), end)]
    assert ends[0] - 10 <= 15
    assert len(ends) < 12
    assert judge(plan, candidate(10, 400), 406)
    assert not judge(plan, candidate(10, 400), 409)


def test_more_evidence_is_a_reason_to_judge_again() -> None:
    plan = JudgingPlan()
    assert judge(plan, candidate(10, 14), 20)
    assert judge(plan, candidate(10, 14, events=1), 23)
    assert not judge(plan, candidate(10, 14, events=1), 26)


def test_the_same_time_on_another_core_is_another_candidate() -> None:
    plan = JudgingPlan()
    assert judge(plan, candidate(10, 14), 20)
    assert judge(plan, candidate(10, 14, core=None), 20)


def test_where_nobody_records_nothing_is_waited_for() -> None:
    assert judge(JudgingPlan(), candidate(10, 14), 14, is_live=False)


def test_what_the_ledger_holds_as_over_is_not_judged_again(incident: MakeIncident) -> None:
    plan = JudgingPlan([LedgerEntry(IncidentState.CLOSED, 1, incident(10, 20))])
    assert not judge(plan, candidate(10, 20), 60)
    assert judge(plan, candidate(10, 40), 60)


def test_what_the_ledger_holds_as_going_on_is_judged_when_it_is_over(
    incident: MakeIncident,
) -> None:
    plan = JudgingPlan([LedgerEntry(IncidentState.OPEN, 1, incident(10, 40))])
    assert not judge(plan, candidate(10, 52), 53)
    assert judge(plan, candidate(10, 52), 60)


def test_what_was_judged_with_nearly_all_of_it_in_view_is_not_judged_again_at_its_end() -> None:
    plan = JudgingPlan()
    assert judge(plan, candidate(10, 40), 41)
    assert not judge(plan, candidate(10, 43), 50)
    assert judge(plan, candidate(10, 43, events=1), 50)


def test_one_that_began_before_the_stretch_is_as_long_as_all_looks_saw_it() -> None:
    plan = JudgingPlan()
    seen = [candidate(max(10, end - 100), end) for end in range(11, 1000, 3)]
    ends = [one.to_ns for one in seen if judge(plan, one, (one.to_ns - at(0)) / 1e9)]
    assert at(600) < ends[-1]
    assert len(ends) < 14
