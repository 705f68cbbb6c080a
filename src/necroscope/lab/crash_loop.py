"""A real container that crashes at every start and leaks a memory cgroup each time, by podman with
storage of its own.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from necroscope.lab.cgroup import all_mount_points
from necroscope.lab.stage import Stage

NEEDS: Final = ("podman", "runc", "sh", "sleep", "ldd", "taskset")
# A container outlives the lab if that is killed; so it stops by itself after a few minutes.
_MOST_RESTARTS: Final = 1500
_DUMP: Final = (
    'read id < /proc/sys/kernel/random/uuid; sleep {:.2f}; echo "$id: no backend" > "/state/$id";'
    " exit 3"
)


@dataclass(frozen=True, slots=True)
class CrashLoop:
    """`parent` is its cgroup in every hierarchy; `state` the memory-backed volume whose files
    outlive each start.
    """

    name: str
    id: str
    parent: str
    state: Path


def start_crash_loop(stage: Stage) -> CrashLoop:
    """Each start has a cgroup of its own, writes one file that stays, and fails. The file keeps the
    dead cgroup alive.
    """
    name, parent = stage.invent("agent"), stage.invent("app")
    state = stage.mount_tmpfs(1 << 30, nr_inodes=200_000)
    rootfs = _make_rootfs(stage)
    stage.will_undo("cgroup", directories=[str(point / parent) for point in all_mount_points()])
    storage = stage.scratch / "storage"
    podman = _podman(storage)
    stage.will_undo("containers", podman=podman, root=str(storage))
    limits = [word for limit in ("nofile", "nproc") for word in ("--ulimit", f"{limit}=1024:1024")]
    volume = ["--volume", f"{state}:/state", "--rootfs", str(rootfs)]
    restart = ["--restart", f"on-failure:{_MOST_RESTARTS}", "--cgroup-parent", f"/{parent}"]
    crash = ["/bin/sh", "-c", _DUMP.format(stage.random.uniform(0.3, 1.0))]
    run = [
        "run",
        "--detach",
        "--name",
        name,
        "--network",
        "none",
        *restart,
        *limits,
        *volume,
        *crash,
    ]
    # Away from the chosen core: a container runtime runs where there is time.
    elsewhere = ["taskset", "--cpu-list", ",".join(map(str, stage.other_cores))]
    return CrashLoop(name, stage.run([*elsewhere, *podman, *run]).strip(), parent, state)


def _podman(storage: Path) -> list[str]:
    """Systemd and the journal are not needed; cgroups are made directly."""
    places = {"--root": "root", "--runroot": "run", "--tmpdir": "tmp"}
    own = [word for option, name in places.items() for word in (option, str(storage / name))]
    return [
        "podman",
        *own,
        "--runtime",
        "runc",
        "--cgroup-manager",
        "cgroupfs",
        "--events-backend",
        "file",
    ]


def _make_rootfs(stage: Stage) -> Path:
    """A shell, a sleep and the libraries they need, nothing else: no image has to be fetched."""
    rootfs = stage.scratch / "rootfs"
    for directory in ("bin", "proc", "sys", "dev", "etc", "tmp", "run", "state"):
        (rootfs / directory).mkdir(parents=True)
    for program in ("sh", "sleep"):
        path = shutil.which(program) or f"/bin/{program}"
        shutil.copy(path, rootfs / "bin" / program)
        for library in (word for word in stage.run(["ldd", path]).split() if word.startswith("/")):
            target = rootfs / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(library), target)
    return rootfs
