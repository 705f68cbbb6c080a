"""Containers that run now, whatever their runtime: by the cgroups there are."""

import time
from functools import lru_cache
from pathlib import Path

from necroscope.errors import SourceUnavailable
from necroscope.model.container_paths import ContainerPath, parse_container
from necroscope.model.names import LINE_LIMIT, clean
from necroscope.sources.cgroupfs import hierarchies
from necroscope.sources.cgroupfs.hierarchies import Hierarchy
from necroscope.sources.cgroupfs.walk import walk
from necroscope.sources.containers.container_state import ContainerState


def read_running(root: Path) -> dict[str, ContainerState]:
    """By container id. A cgroup below a container's own is the same container: the outermost path
    counts.
    """
    found: dict[str, ContainerState] = {}
    for hierarchy in _telling(hierarchies.read(root)):
        try:
            paths = walk(hierarchy.mount_point, time.monotonic_ns).paths
        except OSError as error:
            raise SourceUnavailable(
                f"cannot list {clean(hierarchy.mount_point)}: {error.strerror}"
            ) from None
        for path in sorted(paths, key=len):
            text, parsed = _parse(path)
            if (
                parsed is not None
                and parsed.container is not None
                and parsed.container not in found
            ):
                found[parsed.container] = ContainerState(
                    parsed.container,
                    parsed.runtime,
                    pod_uid=parsed.pod_uid,
                    qos=parsed.qos,
                    cgroup=text,
                    state="running",
                )
    return found


@lru_cache(maxsize=4096)
def _parse(path: bytes) -> tuple[str, ContainerPath | None]:
    """The same cgroups are there again and again."""
    text = clean(path, LINE_LIMIT)
    return text, parse_container(text)


def _telling(mounted: list[Hierarchy]) -> list[Hierarchy]:
    """The memory controller's, where it is on v1; the unified one else."""
    memory = [hierarchy for hierarchy in mounted if "memory" in hierarchy.controllers]
    return memory or [hierarchy for hierarchy in mounted if hierarchy.version == 2] or mounted[:1]
