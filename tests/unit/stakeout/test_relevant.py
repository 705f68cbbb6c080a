"""Which incidents a stakeout reports, and which comes first."""

from necroscope.analysis.report import Incident, Report, Verdict
from necroscope.stakeout.outcome import CaughtEvent, Outcome, Run
from necroscope.stakeout.relevant import relevant

S = 1_000_000_000


def incident(from_s: int, to_s: int) -> Incident:
    verdict = Verdict("unknown", "", 0.3, "")
    return Incident(f"{from_s}", from_s * S, to_s * S, 1, "system", (), (), verdict)


def run(number: int, from_s: int, to_s: int, exit_code: int = 0) -> Run:
    return Run(number, from_s * S, to_s * S, exit_code, 0.1, 1, "x.log")


def ids(outcome: Outcome) -> list[str]:
    incidents = tuple(incident(start, start + 5) for start in (0, 12, 32, 52, 70))
    return [one.id for one in relevant(Report(1, "n", 0, 99 * S, incidents), outcome).incidents]


def test_what_met_no_run_is_left_out() -> None:
    assert ids(Outcome([run(1, 10, 20), run(2, 30, 40)])) == ["12", "32"]


def test_the_incident_of_the_failed_run_comes_first() -> None:
    assert ids(Outcome([run(1, 10, 20), run(2, 30, 40, exit_code=1), run(3, 50, 60)])) == [
        "32",
        "12",
        "52",
    ]


def test_the_incident_of_the_caught_event_comes_before_all() -> None:
    outcome = Outcome(
        [run(1, 10, 20, exit_code=1), run(2, 50, 60)], [CaughtEvent(58 * S, "nic_reset", "", (2,))]
    )
    assert ids(outcome) == ["52", "12"]
