"""When a job has stalled: drawn as shares of a core, a character per second and member."""

from necroscope.model.units import NS_PER_S
from necroscope.sources.jobs.stall_watch import Stall, StallWatch

WORKS = "9" * 20


def stalls(*members: str) -> list[tuple[int, Stall]]:
    """Each member is a text of tenths of a core, one per second; with the second it was reported."""
    watch, found = StallWatch(), []
    for second in range(1, max(map(len, members)) + 1):
        for pid, text in enumerate(members):
            if second <= len(text):
                work_ns = int(text[second - 1]) * NS_PER_S // 10
                watch.note("torch/x", pid, second * NS_PER_S, NS_PER_S, work_ns)
            else:
                watch.forget("torch/x", pid)
        found += [(second, stall) for stall in watch.stalls(second * NS_PER_S)]
    return found


def test_a_job_in_which_nobody_works_any_more_has_stalled_and_the_first_is_named() -> None:
    ((second, stall),) = stalls(WORKS + "9" + "0" * 15, WORKS + "0" * 16)
    assert stall.first == 1
    assert stall.since_ns == 20 * NS_PER_S
    assert second == 31


def test_one_that_works_keeps_the_job_going() -> None:
    assert not stalls(WORKS + "0" * 30, WORKS + "9" * 30)


def test_a_job_that_never_worked_has_not_stalled() -> None:
    assert not stalls("0" * 60, "0" * 60)
    assert not stalls("1" * 20 + "0" * 40)


def test_it_is_reported_once_and_again_when_it_went_on_meanwhile() -> None:
    assert len(stalls(WORKS + "0" * 60)) == 1
    assert len(stalls(WORKS + "0" * 20 + WORKS + "0" * 20)) == 2


def test_a_job_that_has_ended_is_forgotten() -> None:
    assert not stalls(WORKS, WORKS + "9" * 30)
