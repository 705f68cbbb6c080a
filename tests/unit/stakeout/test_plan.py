"""When another run starts, and when it is over."""

from necroscope.stakeout.outcome import CaughtEvent, EndedBy, Ending, Outcome, Run
from necroscope.stakeout.plan import Plan

S = 1_000_000_000


def run(number: int, exit_code: int = 0, stopped: bool = False) -> Run:
    return Run(number, 0, S, exit_code, 0.1, 1, "x.log", stopped)


def test_runs_start_until_as_many_as_asked_for_are_under_way_or_done() -> None:
    plan = Plan(frozenset({"failure"}), repeat=3, parallel=2)
    assert plan.may_start(Outcome(), 1)
    assert not plan.may_start(Outcome(), 2)
    assert not plan.may_start(Outcome([run(1), run(2)]), 1)


def test_the_first_failure_ends_it() -> None:
    plan = Plan(frozenset({"failure"}), repeat=9)
    assert plan.over(Outcome([run(1)]), 0, 0) is None
    assert plan.over(Outcome([run(1), run(2, 3)]), 0, 0) == Ending(EndedBy.FAILURE, "run 2 failed")


def test_a_run_that_was_stopped_is_no_failure() -> None:
    outcome = Outcome([run(1), run(2, -15, stopped=True)])
    assert Plan(frozenset({"failure"})).over(outcome, 0, 0) is None
    assert (outcome.successes, outcome.finished) == (1, 1)


def test_a_failure_does_not_end_a_wait_for_an_event() -> None:
    plan = Plan(frozenset({"nic_reset"}))
    assert plan.over(Outcome([run(1, 1)]), 0, 0) is None
    assert plan.over(Outcome([], [CaughtEvent(0, "nic_reset", "", ())]), 1, 0) == Ending(
        EndedBy.EVENT, "caught nic_reset"
    )


def test_counting_goes_on_until_the_time_or_the_runs_are_over() -> None:
    plan = Plan(frozenset({"failure"}), limit_ns=9 * S, repeat=2, counts_all=True)
    failed = Outcome([run(1, 1)], [CaughtEvent(0, "nic_reset", "", ())])
    assert plan.over(failed, 0, S) is None
    assert plan.over(failed, 1, 9 * S) == Ending(EndedBy.TIME, "the time is over")
    assert plan.over(Outcome([run(1), run(2)]), 0, S) == Ending(EndedBy.RUNS, "all runs are done")
    assert plan.over(Outcome([run(1), run(2)]), 1, S) is None


def test_what_was_waited_for_has_happened_or_not() -> None:
    assert not Plan(frozenset({"nic_reset"})).found(Outcome([run(1, 1)]))
    assert Plan(frozenset({"failure"}), counts_all=True).found(Outcome([run(1, 1), run(2)]))
    assert Plan(frozenset({"nic_reset"})).found(Outcome([], [CaughtEvent(0, "nic_reset", "", ())]))


def test_what_ended_it_is_in_the_json() -> None:
    assert Outcome(ended=Ending(EndedBy.TIME, "the time is over")).as_json()["ended_by"] == "time"
