"""The tables of jobs: work that has ranks, actors or workers, here those of them that run on this
node, and how each of them got on.
"""

from typing import Final

from necroscope.model.table import Column, Table, Type

JOB_TABLES: Final = (
    Table(
        "job_members",
        "processes that are part of a job, written when one is found, when it ends, and at the"
        " start of a segment",
        "named variables of /proc/PID/environ (RANK, SLURM_JOB_ID, ...), the name of the file"
        " behind its standard error, pidfd; at its end the last lines of that file",
        (
            Column("time", Type.INT64, "when, in ns UTC"),
            Column("job", Type.CATEGORY, "its id, the same on all nodes of the job"),
            Column("kind", Type.CATEGORY, "torch, slurm, mpi, kubernetes or ray"),
            Column("role", Type.CATEGORY, "rank, task, worker, driver, raylet or gcs"),
            Column("rank", Type.INT32, "its number in the job", nullable=True),
            Column("world_size", Type.INT32, "how many ranks the job has", nullable=True),
            Column("attempt", Type.INT32, "restarts of the job before this one", nullable=True),
            Column("pid", Type.INT32, "process"),
            Column("comm", Type.CATEGORY, "its name"),
            Column("cgroup", Type.CATEGORY, "cgroup path", nullable=True),
            Column("started_ns", Type.INT64, "when it was started, in ns UTC"),
            Column("leader", Type.CATEGORY, "address where its ranks meet", nullable=True),
            Column("address", Type.CATEGORY, "its own address in the network", nullable=True),
            Column("cores", Type.INT32, "cores it may run on", nullable=True),
            Column("gpus", Type.INT32, "GPUs it may use, as its variables say", nullable=True),
            Column("ended_ns", Type.INT64, "when it was gone, in ns UTC", nullable=True),
            Column(
                "status",
                Type.INT32,
                "how it ended, as wait(2) reports it (Linux 6.15); null if it is not known",
                nullable=True,
            ),
            Column(
                "words",
                Type.UTF8,
                "what the program itself said last; any user who runs a job can write this",
                nullable=True,
            ),
            Column(
                "peer",
                Type.CATEGORY,
                "address of another member that these words name",
                nullable=True,
            ),
        ),
    ),
    Table(
        "job_progress",
        "what each member of a job got done since the row before; of at most 64 members",
        "/proc/PID/stat and schedstat",
        (
            Column("time", Type.INT64, "when, in ns UTC"),
            Column("job", Type.CATEGORY, "its id"),
            Column("pid", Type.INT32, "process"),
            Column("cpu", Type.INT16, "core its first thread ran on last"),
            Column("state", Type.CATEGORY, "of its first thread, one letter as in /proc/PID/stat"),
            Column(
                "elapsed_ns",
                Type.INT64,
                "time since the row before: the denominator of every share",
            ),
            Column("cpu_ns", Type.INT64, "time all its threads were on a core"),
            Column(
                "delay_ns",
                Type.INT64,
                "time its first thread wanted a core and had none; booked when the wait ends",
                nullable=True,
            ),
        ),
    ),
)
