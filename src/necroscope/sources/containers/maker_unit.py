"""The systemd unit of a process that may make containers, from its cgroups."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.container_paths import parse_unit
from necroscope.model.names import LINE_LIMIT, clean

# They make containers for a client; that client is looked for.
_RUNTIME_UNITS: Final = frozenset(
    f"{name}.service"
    for name in (
        "docker",
        "containerd",
        "podman",
        "crio",
        "cri-docker",
        "kubelet",
        "snap.docker.dockerd",
    )
)
_LIMIT_BYTES: Final = 1 << 16


class ContainerMaker(NamedTuple):
    """`how` says in words by what it is known."""

    unit: str
    how: str


def unit_of(cgroups: bytes) -> str | None:
    """The service of a process from its /proc/PID/cgroup, if it may be a maker. systemd's own
    hierarchy comes first: runtimes move their monitors in the others.
    """
    lines = [line.split(b":", 2) for line in cgroups.splitlines()]
    paths = sorted(
        (line for line in lines if len(line) == 3),
        key=lambda line: (line[1] != b"name=systemd", line[1] != b""),
    )
    units = (parse_unit(clean(path, LINE_LIMIT)) for _, _, path in paths)
    service = next((unit for unit in units if unit and unit.endswith(".service")), None)
    return None if service in _RUNTIME_UNITS else service


def read_unit(root: Path, pid: str) -> str | None:
    return unit_of(read_process_file(root / "proc" / pid / "cgroup"))


def read_process_file(path: Path, limit: int = _LIMIT_BYTES) -> bytes:
    """Empty if the process is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return b""
    try:
        return b"".join(_chunks(descriptor, limit))
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _chunks(descriptor: int, limit: int) -> Iterator[bytes]:
    while limit > 0 and (data := os.read(descriptor, limit)):
        limit -= len(data)
        yield data
