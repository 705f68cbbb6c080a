"""Which job a process is part of: by the variables that launchers set for their ranks, and by where
Ray has its workers write.

The variables are those of torchrun (torch/distributed/elastic/agent/server/local_elastic_agent.py),
Slurm (srun(1)), Open MPI, MPICH and Kubernetes' indexed jobs. They are set by whoever starts a
process, so a user can claim to be part of any job; nothing but the story of that job believes it.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from necroscope.model.names import clean

# The only variables that are read of another process; all others may be secrets.
VARIABLES: Final = frozenset(
    {
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
        "TORCHELASTIC_RUN_ID",
        "TORCHELASTIC_RESTART_COUNT",
        "SLURM_JOB_ID",
        "SLURM_PROCID",
        "SLURM_NTASKS",
        "SLURM_RESTART_COUNT",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_MCA_ess_base_jobid",
        "PMI_RANK",
        "PMI_SIZE",
        "JOB_COMPLETION_INDEX",
        "HOSTNAME",
        "CUDA_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
    }
)
_ID_LIMIT: Final = 120
_LARGEST_RANK: Final = 1 << 24
# What torchrun calls a run that was given no id.
_NO_ID: Final = ("none", "")
_RAY_LOG: Final = re.compile(
    r"/(?P<session>session_[0-9_-]{10,40})/logs/(?:worker-[0-9a-f]{8,64}-(?P<job>[0-9a-f]{8})-\d+\."
    r"|(?P<process>raylet|gcs_server)\b|job-driver-(?P<submission>[\w.-]{1,80}?)\.log)"
)
_RAY_ROLES: Final = {"raylet": "raylet", "gcs_server": "gcs"}
# A worker that waits for its first job.
_RAY_NO_JOB: Final = "ffffffff"
_POD_OF_JOB: Final = re.compile(r"(?P<job>.+)-\d+-[a-z0-9]{5}")


class Membership(NamedTuple):
    """`job` begins with its kind, so that ids of two launchers do not meet."""

    job: str
    kind: str
    role: str
    rank: int | None = None
    world_size: int | None = None
    attempt: int | None = None
    leader: str | None = None
    gpus: int | None = None


def membership(variables: Mapping[str, str], log: str | None) -> Membership | None:
    """`log` is the file behind its standard error."""
    ray = _of_ray(log)
    if ray is not None:
        return ray
    for of_launcher in (_of_torch, _of_slurm, _of_mpi, _of_kubernetes):
        found = of_launcher(variables)
        if found is not None:
            return found
    return None


def waits_for_job(log: str | None) -> bool:
    """A worker that Ray started in advance: it writes to another file once it is given a job."""
    match = _RAY_LOG.search(log or "")
    return match is not None and match["job"] == _RAY_NO_JOB


def is_submission(found: Membership | None, driver: Membership) -> bool:
    """`ray job submit` gives a job a name of its own; the driver's log has that name, and the log
    of its core the number that Ray gives the job.
    """
    if found is None or (found.kind, found.role) != ("ray", "driver") or found.job == driver.job:
        return False
    return found.job.rpartition("/")[0] == driver.job.rpartition("/")[0]


def _of_ray(log: str | None) -> Membership | None:
    match = _RAY_LOG.search(log or "")
    if match is None or match["job"] == _RAY_NO_JOB:
        return None
    session = match["session"].removeprefix("session_")
    if match["job"]:
        return Membership(f"ray/{session}/{match['job']}", "ray", "worker")
    if match["submission"]:
        return Membership(f"ray/{session}/{match['submission']}", "ray", "driver")
    return Membership(f"ray/{session}", "ray", _RAY_ROLES[match["process"]])


def _of_torch(variables: Mapping[str, str]) -> Membership | None:
    rank, size = _number(variables, "RANK"), _number(variables, "WORLD_SIZE")
    if rank is None or not size:
        return None
    leader = ":".join(
        text for name in ("MASTER_ADDR", "MASTER_PORT") if (text := variables.get(name))
    )
    run = variables.get("TORCHELASTIC_RUN_ID", "")
    slurm = variables.get("SLURM_JOB_ID")
    name = slurm or (run if run not in _NO_ID else "") or leader
    if not name:
        return None
    return Membership(
        job=_job("slurm" if slurm else "torch", name),
        kind="torch",
        role="rank",
        rank=rank,
        world_size=size,
        attempt=_number(variables, "TORCHELASTIC_RESTART_COUNT"),
        leader=clean(leader) or None,
        gpus=_gpus(variables),
    )


def _of_slurm(variables: Mapping[str, str]) -> Membership | None:
    job = variables.get("SLURM_JOB_ID")
    if not job:
        return None
    return Membership(
        job=_job("slurm", job),
        kind="slurm",
        role="task",
        rank=_number(variables, "SLURM_PROCID"),
        world_size=_number(variables, "SLURM_NTASKS"),
        attempt=_number(variables, "SLURM_RESTART_COUNT"),
        gpus=_gpus(variables),
    )


def _of_mpi(variables: Mapping[str, str]) -> Membership | None:
    rank = _number(variables, "OMPI_COMM_WORLD_RANK", "PMI_RANK")
    job = variables.get("OMPI_MCA_ess_base_jobid")
    if rank is None or not job:
        return None
    size = _number(variables, "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
    return Membership(_job("mpi", job), "mpi", "rank", rank, size, gpus=_gpus(variables))


def _of_kubernetes(variables: Mapping[str, str]) -> Membership | None:
    """A pod of an indexed Job is called JOB-INDEX-xxxxx, and so is its host."""
    index = _number(variables, "JOB_COMPLETION_INDEX")
    pod = _POD_OF_JOB.fullmatch(variables.get("HOSTNAME", ""))
    if index is None or pod is None:
        return None
    job = _job("kubernetes", pod["job"])
    return Membership(job, "kubernetes", "task", index, gpus=_gpus(variables))


def _job(kind: str, name: str) -> str:
    return f"{kind}/{clean(name, _ID_LIMIT)}"


def _number(variables: Mapping[str, str], *names: str) -> int | None:
    for name in names:
        text = variables.get(name, "")
        if text.isascii() and text.isdecimal() and len(text) < 10 and int(text) < _LARGEST_RANK:
            return int(text)
    return None


def _gpus(variables: Mapping[str, str]) -> int | None:
    """`all` and names of groups tell no number."""
    text = variables.get("CUDA_VISIBLE_DEVICES", variables.get("NVIDIA_VISIBLE_DEVICES"))
    if text is None or text in ("all", "void", "none"):
        return 0 if text in ("void", "none") else None
    return len([part for part in text.split(",") if part.strip()])
