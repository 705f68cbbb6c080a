"""Which systemd unit makes a container: by the process that watches it, by the command that names
it, by who is connected to its daemon.

A supervisor that removes and re-creates its container leaves no restart counter behind, and the
container lies in a cgroup of its own or of its daemon. What is left of the supervisor in /proc:

    conmon -c ID ...        Podman's and CRI-O's monitor. It stays in its maker's unit on cgroup v1,
                            in systemd's own hierarchy, and on v2 with `--cgroups=split`
    podman run --name X     The client, in its maker's unit, as long as it runs or waits
    a connection            to the daemon's socket: `ecs-init` waits on one for its container's end

Only root's processes are believed: anyone can give one a name and words. Who may use the daemon is
known by its connection.

Command lines hold secrets: they are searched for the container's id and name, and not kept.
"""

import os
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from necroscope.model.container_paths import parse_unit
from necroscope.model.names import LINE_LIMIT, clean
from necroscope.model.units import NS_PER_S
from necroscope.sources import unix_peers
from necroscope.sources.jobs.newcomers import real_user

_MONITORS: Final = frozenset({"conmon"})
_CLIENTS: Final = frozenset({"podman", "docker", "nerdctl", "ctr", "crictl"})
# They make containers because somebody asks them to; that one is looked for.
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
_ROOT: Final = 0
_COMMAND_LINE_BYTES: Final = 1 << 16
_SHORT_ID: Final = 12
# A client lives for a fifth of a second. Of the time of a watch, what its looks may take.
_PAUSE_S: Final = 0.05
_LOOKS_SHARE: Final = 0.2

_RECENT_NS: Final = 120 * NS_PER_S
_NAMES_LIMIT: Final = 200
_IDS_KEPT: Final = 7

# The ids under which a container of a name was seen.
Wanted = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class ContainerMaker:
    """`how` says in words by what it is known."""

    unit: str
    how: str


class MakerWatch:
    """Looks at each process twice: the first look may meet it before its exec, as a copy of the
    shell that starts it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: set[str] = set()
        self._new: set[str] = set()

    def look(self, wanted: Wanted) -> dict[str, ContainerMaker]:
        """By the container's name; what no process tells is not in it."""
        found: dict[str, ContainerMaker] = {}
        pids = {name for name in os.listdir(self._root / "proc") if name.isdecimal()}
        for pid in pids - self._known:
            found |= self._of_process(pid, wanted)
        self._known, self._new = pids & (self._known | self._new), pids
        return found

    def watch(self, wanted: Wanted, seconds: float) -> dict[str, ContainerMaker]:
        """Until all are found or the time is over."""
        deadline = time.monotonic() + seconds
        found: dict[str, ContainerMaker] = {}
        while True:
            began = time.monotonic()
            found |= self.look({name: wanted[name] for name in wanted.keys() - found.keys()})
            now = time.monotonic()
            if len(found) == len(wanted) or now >= deadline:
                return found
            time.sleep(min(max(_PAUSE_S, (now - began) / _LOOKS_SHARE), deadline - now))

    def _of_process(self, pid: str, wanted: Wanted) -> dict[str, ContainerMaker]:
        folder = self._root / "proc" / pid
        comm = _read(folder / "comm", 64).rstrip(b"\n").decode("utf-8", "replace")
        # Anyone can call a process so and give it these words, also in another's unit: from a
        # crontab in cron.service.
        if comm not in _MONITORS | _CLIENTS or real_user(self._root / "proc", int(pid)) != _ROOT:
            return {}
        arguments = _read(folder / "cmdline", _COMMAND_LINE_BYTES).decode("utf-8", "replace")
        named = [name for name in wanted if _names(arguments.split("\0"), name, wanted[name])]
        unit = unit_of(_read(folder / "cgroup", _COMMAND_LINE_BYTES)) if named else None
        if unit is None:
            return {}
        verb = "watches" if comm in _MONITORS else "names"
        how = f"{comm} (pid {pid}), which {verb} it, runs in the unit's cgroup"
        return {name: ContainerMaker(unit, how) for name in named}


class MakerSearch:
    """The makers of the containers that are re-created. Each is looked for until it is found, or
    nothing is re-created any more: a /proc of thousands is not read for nothing.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._containers: dict[str, list[str]] = {}
        self._started_ns: dict[str, int] = {}
        self.found: dict[str, ContainerMaker] = {}

    def saw_start(self, name: str, container: str, time_ns: int) -> None:
        if name not in self._containers and len(self._containers) >= _NAMES_LIMIT:
            self._containers.pop(next(iter(self._containers)))
        own = self._containers.setdefault(name, [])
        if container not in own:
            self._containers[name] = [*own[-_IDS_KEPT:], container]
        self._started_ns[name] = time_ns

    def search(self, sockets: Collection[str], seconds: float, now_ns: int) -> None:
        recent_ns = now_ns - _RECENT_NS
        wanted = {
            name: own
            for name, own in self._containers.items()
            if len(own) > 1 and name not in self.found and self._started_ns[name] >= recent_ns
        }
        if not wanted:
            return
        self.found |= MakerWatch(self._root).watch(wanted, seconds)
        missing = wanted.keys() - self.found.keys()
        makers = [maker for path in sockets if (maker := by_socket(self._root, path)) is not None]
        if missing and len(makers) == 1:
            self.found |= dict.fromkeys(missing, makers[0])


def by_socket(root: Path, socket: str) -> ContainerMaker | None:
    """The one unit that is connected to a daemon's socket; None if there is none, or more: then
    each of them may be.
    """
    found: dict[str, str] = {}
    for pid in unix_peers.clients(root, socket):
        unit = unit_of(_read(root / "proc" / pid / "cgroup", _COMMAND_LINE_BYTES))
        if unit is not None and pid != str(os.getpid()):
            found.setdefault(unit, pid)
    if len(found) != 1:
        return None
    ((unit, pid),) = found.items()
    return ContainerMaker(unit, f"no other unit is connected to {socket} (pid {pid})")


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


def _names(arguments: list[str], name: str, containers: Collection[str]) -> bool:
    wholes = {name, f"--name={name}", *containers}
    return any(
        argument in wholes
        or (len(argument) >= _SHORT_ID and any(one.startswith(argument) for one in containers))
        for argument in arguments
    )


def _read(path: Path, limit: int) -> bytes:
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
