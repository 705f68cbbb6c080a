"""Which systemd unit makes a container: by the process that watches it, by the command that names
it, by who is connected to its daemon.

A supervisor that removes and re-creates its container leaves no restart counter behind, and the
container lies in a cgroup of its own or of its daemon. What is left of the supervisor in /proc:

    conmon -c ID ...        Podman's and CRI-O's monitor. It stays in its maker's unit on cgroup v1,
                            in systemd's own hierarchy, and on v2 with `--cgroups=split`
    podman run --name X     The client, in its maker's unit, as long as it runs or waits
    a connection            to the daemon's socket, when a container starts (connections.py)

Only root's processes are believed: anyone can give one a name and words. Who may use the daemon is
known by its connection.

Command lines hold secrets: they are searched for the container's id and name, and not kept.
"""

import os
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from necroscope.sources.containers.connections import ConnectionLog
from necroscope.sources.containers.maker_unit import ContainerMaker, read_process_file, read_unit
from necroscope.sources.jobs.newcomers import real_user
from necroscope.sources.unix_peers import SocketReader

_MONITORS: Final = frozenset({"conmon"})
_CLIENTS: Final = frozenset({"podman", "docker", "nerdctl", "ctr", "crictl"})
_ROOT: Final = 0
_SHORT_ID: Final = 12
# A client lives for a fifth of a second. Of the time of a watch, what its looks may take.
_PAUSE_S: Final = 0.05
_LOOKS_SHARE: Final = 0.2

_NAMES_LIMIT: Final = 200
_KEPT: Final = 7
# Who has not been seen in as many watches is not looked for any more: that would cost without end.
_WATCHES: Final = 30

# The ids under which a container of a name was seen.
Wanted = Mapping[str, Collection[str]]


class MakerWatch:
    """Looks at each process twice: the first look may meet it before its exec, as a copy of the
    shell that starts it.
    """

    def __init__(self, root: Path, connections: ConnectionLog, realtime: Callable[[], int]) -> None:
        self._root = root
        self._connections = connections
        self._realtime = realtime
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
            self._connections.look(self._realtime())
            found |= self.look({name: wanted[name] for name in wanted.keys() - found.keys()})
            now = time.monotonic()
            if len(found) == len(wanted) or now >= deadline:
                return found
            time.sleep(min(max(_PAUSE_S, (now - began) / _LOOKS_SHARE), deadline - now))

    def _of_process(self, pid: str, wanted: Wanted) -> dict[str, ContainerMaker]:
        folder = self._root / "proc" / pid
        comm = read_process_file(folder / "comm", 64).rstrip(b"\n").decode("utf-8", "replace")
        # Anyone can call a process so and give it these words, also in another's unit: from a
        # crontab in cron.service.
        if comm not in _MONITORS | _CLIENTS or real_user(self._root / "proc", int(pid)) != _ROOT:
            return {}
        arguments = read_process_file(folder / "cmdline").decode("utf-8", "replace")
        named = [name for name in wanted if _names(arguments.split("\0"), name, wanted[name])]
        unit = read_unit(self._root, pid) if named else None
        if unit is None:
            return {}
        verb = "watches" if comm in _MONITORS else "names"
        how = f"{comm} (pid {pid}), which {verb} it, runs in the unit's cgroup"
        return {name: ContainerMaker(unit, how) for name in named}


class MakerSearch:
    """The makers of the containers that are re-created. Each is looked for until it is found, or
    nothing is re-created any more: a /proc of thousands is not read for nothing.
    """

    def __init__(
        self,
        root: Path,
        sockets: Collection[str],
        realtime: Callable[[], int] = time.time_ns,
        sockets_of: SocketReader | None = None,
    ) -> None:
        self._root = root
        self._realtime = realtime
        self._connections = ConnectionLog(root, sockets, sockets_of)
        self._containers: dict[str, list[str]] = {}
        self._starts_ns: dict[str, list[int]] = {}
        self._watches: dict[str, int] = {}
        self.found: dict[str, ContainerMaker] = {}

    def saw_start(self, name: str, container: str, time_ns: int) -> None:
        if name not in self._containers and len(self._containers) >= _NAMES_LIMIT:
            oldest = next(iter(self._containers))
            del self._containers[oldest], self._starts_ns[oldest]
            self._watches.pop(oldest, None)
        own = self._containers.setdefault(name, [])
        if container not in own:
            self._containers[name] = [*own[-_KEPT:], container]
        self._starts_ns[name] = [*self._starts_ns.get(name, [])[-_KEPT:], time_ns]

    def search(self, seconds: float, since_ns: int) -> None:
        """Of what was started since then: what the last watch saw at the starts that are known
        now, and what the next one sees.
        """
        self.settle()
        wanted = self.wanted(since_ns)
        if wanted:
            watch = MakerWatch(self._root, self._connections, self._realtime)
            self.found |= watch.watch(wanted, seconds)
            self._watches |= {name: self._watches.get(name, 0) + 1 for name in wanted}

    def wanted(self, since_ns: int) -> dict[str, list[str]]:
        """The ids of what was re-created since then by a maker that is not known."""
        return {
            name: own
            for name, own in self._containers.items()
            if self._is_wanted(name) and self._starts_ns[name][-1] >= since_ns
        }

    def settle(self) -> None:
        """Who was connected when they started."""
        for name, starts_ns in self._starts_ns.items():
            if self._is_wanted(name):
                maker = self._connections.maker(starts_ns)
                self.found |= {name: maker} if maker is not None else {}

    def _is_wanted(self, name: str) -> bool:
        """It has come back under another id."""
        is_recreated = len(self._containers[name]) > 1
        return is_recreated and name not in self.found and self._watches.get(name, 0) <= _WATCHES


def _names(arguments: list[str], name: str, containers: Collection[str]) -> bool:
    wholes = {name, f"--name={name}", *containers}
    return any(
        argument in wholes
        or (len(argument) >= _SHORT_ID and any(one.startswith(argument) for one in containers))
        for argument in arguments
    )
