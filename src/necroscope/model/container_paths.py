"""Which container, pod and unit a cgroup path belongs to, for every runtime that puts an id into
its path.

The forms (v1 and v2 paths alike, also below another cgroup, as in kind or in nested runtimes):

    /docker/ID                                                         Docker, cgroupfs driver
    /system.slice/docker-ID.scope                                      Docker, systemd driver
    /machine.slice/libpod-ID.scope[/container]   /libpod_parent/libpod-ID   Podman
    /kubepods[/burstable]/podUID/ID                                    kubelet, cgroupfs driver
    /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/cri-containerd-ID.scope
    kubelet, systemd driver
    .../crio-ID.scope   .../crio-conmon-ID.scope (the monitor, no container)   CRI-O
    /system.slice/containerd.service/kubepods-...:cri-containerd:ID    containerd without the
    systemd driver on a systemd node
    /ecs/TASK/ID   /ecs/CLUSTER/TASK/ID                                Amazon ECS
    /lxc/NAME   /lxc.payload.NAME   /machine.slice/machine-NAME.scope  LXC, LXD, nspawn, libvirt

Sources: kubernetes pkg/kubelet/cm/cgroup_manager_linux.go and pod_container_manager_linux.go, runc
libcontainer/cgroups/systemd, podman libpod/container_internal_linux.go, cri-o
internal/config/cgmgr, lxc src/lxc/cgroups.
"""

import re
from typing import Final, NamedTuple

_ID: Final = r"[0-9a-f]{64}|[0-9a-f]{32}-\d{10}"
_SCOPE: Final = re.compile(rf"(?:(?P<runtime>[a-z][a-z-]*)-)?(?P<id>{_ID})(?:\.scope)?")
_COLON: Final = re.compile(rf"(?P<slice>[^:]+):(?P<runtime>[a-z][a-z-]*):(?P<id>{_ID})")
_POD: Final = re.compile(
    r"(?:kubepods(?:-(?P<qos>besteffort|burstable))?-)?"
    r"pod(?P<uid>[0-9a-fA-F]{8}[-_0-9a-fA-F]{24,28})(?:\.slice)?"
)
_QOS: Final = re.compile(r"(?:kubepods-)?(?P<qos>besteffort|burstable)(?:\.slice)?")
_LXC: Final = re.compile(r"lxc\.payload\.(?P<payload>.+)|machine-(?P<machine>.+)\.scope")
_UNIT: Final = re.compile(r".+\.(?:service|scope|mount|swap|socket)")
# What runtimes write before the id, and what the runtime is called.
_RUNTIMES: Final = {
    "docker": "docker",
    "libpod": "podman",
    "cri-containerd": "containerd",
    "containerd": "containerd",
    "nerdctl": "containerd",
    "crio": "cri-o",
}
_PARENTS: Final = {
    "docker": "docker",
    "ecs": "ecs",
    "libpod_parent": "podman",
    "actions_job": "docker",
    "buildkit": "buildkit",
}
# conmon watches a container from a scope of its own: that is not the container.
_MONITORS: Final = ("libpod-conmon", "crio-conmon")
GUARANTEED: Final = "guaranteed"


class ContainerPath(NamedTuple):
    """`container` is the runtime's id, or a name where the runtime uses names (LXC, machines);
    `qos` is Kubernetes' class.
    """

    runtime: str | None
    container: str | None
    pod_uid: str | None = None
    qos: str | None = None


def parse_container(cgroup_path: str) -> ContainerPath | None:
    """The outermost container of a cgroup path: below it, its processes may make cgroups and
    call them like another's container. Where there are pods it is the outermost below the first
    `kubepods`, because a node of kind is itself a container. A pod's own cgroup has no container.
    None if it does not belong to a container.
    """
    parts = [part for part in cgroup_path.split("/") if part]
    found = _outermost(parts)
    pod_uid, qos = _pod(parts)
    if found is None:
        return ContainerPath(None, None, pod_uid, qos) if pod_uid is not None else None
    runtime, container, place = found
    if pod_uid is None and ":" in parts[place]:
        pod_uid, qos = _pod(parts[place].split(":")[:1])
    if runtime is None and pod_uid is not None:
        runtime = "kubernetes"
    return ContainerPath(runtime, container, pod_uid, qos)


def parse_unit(cgroup_path: str) -> str | None:
    """The innermost systemd unit of a cgroup path: a service, else a scope; slices only group."""
    units = [part for part in cgroup_path.split("/") if _UNIT.fullmatch(part)]
    services = [unit for unit in units if unit.endswith(".service")]
    found = services or units
    return found[-1] if found else None


def _outermost(parts: list[str]) -> tuple[str | None, str, int] | None:
    first = next((n for n, part in enumerate(parts) if part.startswith("kubepods")), 0)
    for place in (*range(first, len(parts)), *range(first)):
        found = _of_part(parts, place)
        if found is not None:
            return (*found, place)
    return None


def _of_part(parts: list[str], place: int) -> tuple[str | None, str] | None:
    """Runtime and container that one component names."""
    part = parts[place]
    match = _COLON.fullmatch(part) or _SCOPE.fullmatch(part)
    if match is not None:
        prefix = match["runtime"]
        if prefix in _MONITORS:
            return None
        runtime = _RUNTIMES.get(prefix, prefix) if prefix else _runtime_above(parts[:place])
        return runtime, match["id"]
    named = _LXC.fullmatch(part)
    if named is not None:
        return (
            ("lxc", named["payload"])
            if named["payload"]
            else ("machine", named["machine"].replace("\\x2d", "-"))
        )
    if place > 0 and parts[place - 1] == "lxc":
        return "lxc", part
    return None


def _runtime_above(parts: list[str]) -> str | None:
    return next((_PARENTS[part] for part in reversed(parts) if part in _PARENTS), None)


def _pod(parts: list[str]) -> tuple[str | None, str | None]:
    """A pod without a class of its own above it is guaranteed. systemd's names have `_` where the
    uid has `-`.
    """
    qos = None
    for part in parts:
        match = _POD.fullmatch(part)
        if match is not None:
            return match["uid"].replace("_", "-"), match["qos"] or qos or GUARANTEED
        above = _QOS.fullmatch(part)
        qos = above["qos"] if above is not None else qos
    return None, None
