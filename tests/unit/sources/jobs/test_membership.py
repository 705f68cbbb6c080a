"""Which job a process is part of: the variables of real launchers, and what a user may put there."""

import pytest

from necroscope.sources.jobs.membership import VARIABLES, Membership, membership

TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "train-7",
    "TORCHELASTIC_RESTART_COUNT": "2",
    "CUDA_VISIBLE_DEVICES": "0,1",
}
SESSION = "/tmp/ray/session_2026-11-16_01-40-01_123456_20150/logs/"
WORKER = "worker-0123456789abcdef0123456789abcdef0123456789abcdef01234567-"


def test_a_rank_of_torchrun_knows_its_job_its_number_and_its_gpus() -> None:
    assert membership(TORCHRUN, None) == Membership(
        "torch/train-7", "torch", "rank", 3, 8, 2, "10.0.0.1:29500", 2
    )


def test_a_run_without_an_id_is_called_by_where_its_ranks_meet() -> None:
    found = membership(TORCHRUN | {"TORCHELASTIC_RUN_ID": "none"}, None)
    assert found is not None
    assert found.job == "torch/10.0.0.1:29500"


def test_a_torch_job_under_slurm_has_the_id_that_squeue_shows() -> None:
    found = membership(TORCHRUN | {"SLURM_JOB_ID": "4711", "SLURM_PROCID": "0"}, None)
    assert found is not None
    assert (found.job, found.kind, found.rank) == ("slurm/4711", "torch", 3)


def test_tasks_of_slurm_mpi_and_kubernetes_are_members_too() -> None:
    slurm = membership({"SLURM_JOB_ID": "9", "SLURM_PROCID": "1", "SLURM_NTASKS": "4"}, None)
    mpi = membership({"OMPI_COMM_WORLD_RANK": "2", "OMPI_MCA_ess_base_jobid": "77"}, None)
    pod = membership({"JOB_COMPLETION_INDEX": "5", "HOSTNAME": "sweep-5-x7k2p"}, None)
    assert slurm == Membership("slurm/9", "slurm", "task", 1, 4)
    assert mpi == Membership("mpi/77", "mpi", "rank", 2)
    assert pod == Membership("kubernetes/sweep", "kubernetes", "task", 5)


def test_a_worker_of_ray_is_known_by_the_file_it_writes_to() -> None:
    session = "ray/2026-11-16_01-40-01_123456_20150"
    worker = membership({}, f"{SESSION}{WORKER}01000000-4242.err")
    driver = membership({}, f"{SESSION}job-driver-raysubmit_Xy7.log")
    raylet = membership({}, f"{SESSION}raylet.err")
    assert worker == Membership(f"{session}/01000000", "ray", "worker")
    assert driver == Membership(f"{session}/raysubmit_Xy7", "ray", "driver")
    assert raylet == Membership(session, "ray", "raylet")


def test_a_worker_that_waits_for_its_first_job_is_part_of_none() -> None:
    assert membership({}, f"{SESSION}{WORKER}ffffffff-4242.err") is None


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"RANK": "0"},
        {"RANK": "-1", "WORLD_SIZE": "2", "MASTER_ADDR": "a"},
        {"RANK": "9" * 400, "WORLD_SIZE": "2", "MASTER_ADDR": "a"},
        {"RANK": "²", "WORLD_SIZE": "2", "MASTER_ADDR": "a"},
        {"RANK": "0", "WORLD_SIZE": "0", "MASTER_ADDR": "a"},
        {"JOB_COMPLETION_INDEX": "1", "HOSTNAME": "laptop"},
    ],
)
def test_variables_that_say_nothing_make_no_member(variables: dict[str, str]) -> None:
    assert membership(variables, None) is None


def test_an_id_is_bounded_and_cannot_steer_a_terminal() -> None:
    found = membership(TORCHRUN | {"TORCHELASTIC_RUN_ID": "\x1b[2J" + "x" * 1000}, None)
    assert found is not None
    assert "\x1b" not in found.job
    assert len(found.job) <= 130


def test_no_variable_that_is_read_usually_holds_a_secret() -> None:
    assert not [name for name in VARIABLES if "KEY" in name or "TOKEN" in name or "PASS" in name]
