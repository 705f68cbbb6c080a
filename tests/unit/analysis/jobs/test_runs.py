"""Runs of one job are told apart though ids are used again."""

from dataclasses import replace

import pytest
from tests.drawn_job import JOB, at, rank

from necroscope.analysis.jobs.runs import choose, runs
from necroscope.errors import UsageError


def test_an_id_that_is_used_again_is_another_run() -> None:
    first = [rank(0, "a", ended=50), rank(1, "b", ended=51)]
    again = [rank(0, "a", ended=90, started=55), rank(1, "b", ended=91, started=56)]
    found = runs([*first, *again])
    assert [len(run.members) for run in found] == [2, 2]
    assert choose(found, JOB).from_ns == at(55)
    assert choose(found, JOB, at(20)).from_ns == at(0)


def test_restarts_by_torchrun_are_one_run() -> None:
    members = [rank(0, "a", ended=50, attempt=0), rank(0, "a", ended=90, started=55, attempt=1)]
    assert len(runs(members)) == 1


def test_the_end_of_an_id_is_enough_and_what_is_not_there_lists_what_is() -> None:
    found = runs([replace(rank(0, "a"), job="slurm/4711")])
    assert choose(found, "4711").job == "slurm/4711"
    with pytest.raises(UsageError, match="no job '11'") as result:
        choose(found, "11")
    assert "slurm/4711" in result.value.hint


def test_raylets_belong_to_each_job_of_their_cluster() -> None:
    worker = replace(rank(0, "a"), kind="ray", role="worker", job="ray/s1/01000000")
    raylet = replace(rank(1, "b"), kind="ray", role="raylet", job="ray/s1")
    found = {run.job: len(run.members) for run in runs([worker, raylet])}
    assert found == {"ray/s1/01000000": 2, "ray/s1": 1}


def test_a_job_that_was_submitted_to_ray_is_found_by_both_of_its_ids() -> None:
    """Its driver is recorded under both; the shell that started it only under the submission's."""
    driver = replace(rank(0, "a"), kind="ray", role="driver", rank=None, job="ray/s1/02000000")
    submitted = replace(driver, job="ray/s1/raysubmit_x")
    shell = replace(submitted, pid=99, comm="sh")
    worker = replace(rank(1, "b"), kind="ray", role="worker", rank=None, job="ray/s1/02000000")
    [run] = runs([submitted, shell, driver, worker])
    assert (run.job, run.submission) == ("ray/s1/02000000", "ray/s1/raysubmit_x")
    assert sorted(one.comm for one in run.members) == ["python", "python", "sh"]
    assert choose([run], "raysubmit_x") is choose([run], "02000000")
    later = replace(submitted, started_ns=at(60))
    assert len(runs([driver, later])) == 2, "another process that has its number"
