"""Deaths of jobs on other nodes: only those that have members here are acted on, and once."""

from pathlib import Path

from tests.written_recording import WrittenSegment, at, new_recording, row

from necroscope.outlets.push.deaths_elsewhere import new_deaths, noted, window_line
from necroscope.recorder.requested_windows import _REQUEST
from necroscope.store.query import Store


def recording(tmp_path: Path, *jobs: str) -> Store:
    directory = new_recording(tmp_path / "r")
    rows = [
        row("job_members", 2, job=job, kind="torch", role="rank", pid=place, comm="python")
        for place, job in enumerate(jobs)
    ]
    WrittenSegment(directory, 0).ticks(0, 70).add("job_members", *rows)
    return Store.open(directory)


def test_only_jobs_with_members_here_are_acted_on(tmp_path: Path) -> None:
    store = recording(tmp_path, "slurm/1")
    assert new_deaths(store, {}, {"slurm/1": at(60), "slurm/2": at(60)}) == {"slurm/1": at(60)}


def test_a_raylet_is_part_of_each_job_of_its_cluster(tmp_path: Path) -> None:
    store = recording(tmp_path, "ray/s1")
    found = new_deaths(store, {}, {"ray/s1/01000000": at(60)})
    assert found == {"ray/s1": at(60), "ray/s1/01000000": at(60)}
    assert not new_deaths(recording(tmp_path / "b", "slurm"), {}, {"slurm/1": at(60)})


def test_members_that_die_one_after_the_other_are_one_death(tmp_path: Path) -> None:
    store = recording(tmp_path, "slurm/1")
    known = {"slurm/1": at(30)}
    assert not new_deaths(store, known, {"slurm/1": at(60)})
    assert new_deaths(store, known, {"slurm/1": at(600)})


def test_what_is_an_hour_old_is_forgotten() -> None:
    assert noted({"slurm/1": at(0)}, {"slurm/2": at(4000)}) == {"slurm/2": at(4000)}
    many = {f"slurm/{number}": at(number) for number in range(1000)}
    assert len(noted(many, {})) == 256


def test_the_recorder_understands_the_line() -> None:
    assert _REQUEST.fullmatch(window_line(at(60)))
