"""Control groups of the lab, on v1 (a directory in each controller's hierarchy) and v2 (one
directory) alike.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from necroscope.lab.scenario import CannotProvoke
from necroscope.sources.cgroupfs import hierarchies


@dataclass(frozen=True, slots=True)
class Cgroup:
    """`path` is what /proc/PID/cgroup shows; `directories` are by controller."""

    path: str
    directories: dict[str, Path]

    def directory(self, controller: str) -> Path:
        return self.directories[controller]

    def write(self, file: str, value: str | int) -> None:
        """Into a file such as `memory.limit_in_bytes`: the controller is its first word."""
        (self.directories[file.split(".", 1)[0]] / file).write_text(str(value))

    def read(self, file: str) -> str:
        return (self.directories[file.split(".", 1)[0]] / file).read_text()

    def file(self, file: str) -> str:
        """Its full path, for `stage.watch`."""
        return str(self.directories[file.split(".", 1)[0]] / file)

    def add(self, pid: int) -> None:
        for directory in set(self.directories.values()):
            (directory / "cgroup.procs").write_text(str(pid))

    @property
    def is_v2(self) -> bool:
        return any(
            (directory / "cgroup.controllers").exists() for directory in self.directories.values()
        )


def mount_points(controllers: tuple[str, ...]) -> dict[str, Path]:
    """Where each controller is mounted: on v1 its own mount, else v2 if it has it."""
    found: dict[str, Path] = {}
    for hierarchy in sorted(hierarchies.read(Path("/")), key=lambda each: -each.version):
        point = Path(os.fsdecode(hierarchy.mount_point))
        offered = hierarchy.controllers
        if hierarchy.version == 2:
            offered = tuple((point / "cgroup.controllers").read_text().split())
        found |= {controller: point for controller in controllers if controller in offered}
    missing = [controller for controller in controllers if controller not in found]
    if missing:
        raise CannotProvoke(
            f"no cgroup hierarchy has the controller {', '.join(missing)}",
            "mount it, or boot with it on",
        )
    return found


def all_mount_points() -> list[Path]:
    """Of every hierarchy there is: a container has a cgroup in each."""
    return [Path(os.fsdecode(hierarchy.mount_point)) for hierarchy in hierarchies.read(Path("/"))]


def plan(path: str, controllers: tuple[str, ...]) -> Cgroup:
    """Not made yet: so that the ledger can name it first."""
    points = mount_points(controllers)
    return Cgroup("/" + path, {controller: point / path for controller, point in points.items()})


def make(cgroup: Cgroup) -> None:
    for controller, directory in cgroup.directories.items():
        directory.mkdir(parents=True, exist_ok=True)
        # On v2 every level hands the controller down to the next one.
        for above in reversed(directory.parents[: cgroup.path.count("/")]):
            if (above / "cgroup.subtree_control").exists():
                (above / "cgroup.subtree_control").write_text(f"+{controller}")
        if controller == "cpuset" and (directory / "cpuset.cpus").exists():
            for file in ("cpuset.cpus", "cpuset.mems"):  # a v1 cpuset without them takes no task
                (directory / file).write_text((directory.parent / file).read_text())
