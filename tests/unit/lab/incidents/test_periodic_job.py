"""Turns of a job are found by what its scheduler reaped, not by how busy the core was."""

from necroscope.lab.incidents.periodic_job import _ends_of_jobs
from necroscope.lab.measured import Measurements

NS = 1_000_000_000


def stat(children_ticks: int) -> str:
    """A line of /proc/PID/stat; cutime is its sixteenth field, and a comm may hold a bracket and
    blanks.
    """
    return f"42 (cron (d) x) S 1 42 42 0 -1 0 0 0 0 0 3 4 {children_ticks} 1 20 0 1 0 9 0 0"


def test_a_turn_ends_where_the_scheduler_reaped_a_worker() -> None:
    readings = [(second * NS, stat(150 * (second // 5))) for second in range(1, 21)]
    measured = Measurements({"/proc/42/stat": readings}, (0, 0), (0, 30 * NS))
    assert [time_ns // NS for time_ns in _ends_of_jobs(measured, "/proc/42/stat")] == [
        5,
        10,
        15,
        20,
    ]


def test_a_job_that_did_hardly_anything_is_no_turn() -> None:
    readings = [(second * NS, stat(second)) for second in range(1, 21)]
    measured = Measurements({"/proc/42/stat": readings}, (0, 0), (0, 30 * NS))
    assert not _ends_of_jobs(measured, "/proc/42/stat")
