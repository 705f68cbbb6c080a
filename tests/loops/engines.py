"""The container engines that a node of the loops can have: their units, files and programs."""

import json
from dataclasses import dataclass, field
from pathlib import Path

_DOCKER_PROGRAMS = ("docker", "dockerd", "containerd", "containerd-shim-runc-v2", "ctr")


@dataclass(frozen=True)
class Engine:
    """`program` is its command, `force` what `rm` needs for a container that runs. `socket` and
    `run_names` lie in /run. `wanted` units start with the node.
    """

    program: str
    force: str
    clients: tuple[str, ...]
    socket: str
    run_names: tuple[str, ...]
    wanted: tuple[str, ...]
    units: tuple[str, ...]
    files: dict[str, str]
    links: dict[str, str] = field(default_factory=dict)
    state_directories: tuple[str, ...] = ()


def podman() -> Engine:
    return Engine(
        "/usr/bin/podman",
        "--force --ignore --time 0",
        ("command",),
        "podman/podman.sock",
        ("podman",),
        ("podman.socket",),
        ("podman.socket", "podman.service"),
        {
            "/etc/containers/containers.conf": (
                '[engine]\nruntime="runc"\ncgroup_manager="cgroupfs"\nevents_logger="file"\n'
            ),
            "/etc/containers/storage.conf": (
                '[storage]\ndriver="vfs"\ngraphroot="/var/lib/containers/storage"\n'
                'runroot="/run/containers/storage"\n'
            ),
        },
        # The recorder asks Podman only when its database has changed: that of the node, not ours.
        state_directories=("/var/lib/containers",),
    )


def docker(unpacked: Path) -> Engine:
    """Debian's docker.io and containerd with their own units, from where their packages were
    unpacked.
    """
    programs = {path.name: path for path in unpacked.glob("usr/*bin/*")}
    units = {path.name: path.read_text() for path in unpacked.glob("lib/systemd/system/*")}
    settings = {
        "storage-driver": "vfs",
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        "bridge": "none",
        "iptables": False,
        "ip6tables": False,
        "ip-forward": False,
    }
    drop_ins = "/etc/systemd/system"
    return Engine(
        "/usr/bin/docker",
        "--force",
        ("command", "socket"),
        "docker.sock",
        ("docker.sock", "containerd"),
        ("containerd.service", "docker.service"),
        tuple(units),
        {
            **{f"/usr/lib/systemd/system/{name}": text for name, text in units.items()},
            "/etc/docker/daemon.json": json.dumps(settings),
            # The package would make the group; the machine's modules are not the node's to load.
            f"{drop_ins}/docker.socket.d/group.conf": "[Socket]\nSocketGroup=root\n",
            f"{drop_ins}/containerd.service.d/modules.conf": "[Service]\nExecStartPre=\n",
        },
        links={
            **{f"/usr/bin/{name}": str(programs[name]) for name in _DOCKER_PROGRAMS},
            "/usr/sbin/dockerd": str(programs["dockerd"]),
            f"{drop_ins}/network-online.target": "/dev/null",
        },
    )
