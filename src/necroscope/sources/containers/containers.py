"""The `containers` table: what the daemons say, what log names say, and which cgroups there are,
laid together every 10 s.

All of it is read in a thread: a daemon may hang (each has its deadline), and so may a file system.
A daemon that fails is a gap, also of its events, and the others go on; a socket that is not there
is not a gap, because then there is nothing to miss.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.model.clocks import shift_ns
from necroscope.model.container_paths import ContainerPath, parse_container
from necroscope.model.names import LINE_LIMIT, clean
from necroscope.model.reading import Moment, Reading, Row, Source
from necroscope.model.units import NS_PER_S
from necroscope.sources.background import Background
from necroscope.sources.cgroupfs import hierarchies
from necroscope.sources.cgroupfs.hierarchies import Hierarchy
from necroscope.sources.cgroupfs.walk import walk
from necroscope.sources.containers import oci_bundle
from necroscope.sources.containers.container_events import daemon_events, made_event, restart_event
from necroscope.sources.containers.container_state import ContainerState
from necroscope.sources.containers.daemon import PODMAN_SOCKET, ContainerDaemon, DaemonLook
from necroscope.sources.containers.docker_api import ContainerEvent
from necroscope.sources.containers.kubernetes import LoggedContainer, PodLogs
from necroscope.sources.containers.maker_unit import ContainerMaker
from necroscope.sources.containers.makers import MakerSearch
from necroscope.sources.containers.pod_events import PodOwnerEvents
from necroscope.sources.containers.static_pods import StaticPods
from necroscope.sources.unix_peers import SocketReader


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


SOCKETS: Final = (("docker", "/run/docker.sock"), ("podman", PODMAN_SOCKET))
# What trouble is a gap of: a daemon that does not answer may be hiding deaths; other trouble hides
# states only.
_WITH_EVENTS: Final = ("containers", "events")
_ONLY_STATES: Final = ("containers",)
_GONE: Final = "gone"
_BUNDLES_LIMIT: Final = 5_000
# How much of a round, while containers are re-created and no process has told who does so.
_MAKERS_RATIO: Final = 0.4
_STARTS_LIMIT: Final = 1_000
# What has not come back within this long is not looked for.
_RECREATED_NS: Final = 120 * NS_PER_S


@dataclass(slots=True)
class _Round:
    asked_at: Moment
    ahead_ns: int
    looks: list[DaemonLook] = field(default_factory=list)
    logged: list[LoggedContainer] = field(default_factory=list)
    static_files: dict[str, str] = field(default_factory=dict)
    running: dict[str, ContainerState] | None = None
    causes: list[str] = field(default_factory=list)
    is_daemon_silent: bool = False


class Containers(Source):
    """A row for each container that changed, and for all of them at the start of a segment."""

    name = "containers"
    tables: tuple[str, ...] = _ONLY_STATES

    def __init__(
        self,
        root: Path,
        every_ns: int,
        sockets: Sequence[tuple[str, str]] = SOCKETS,
        realtime: Callable[[], int] = time.time_ns,
        history_ns: int = 0,
        sockets_of: SocketReader | None = None,
    ) -> None:
        """`history_ns`: how far back the first look asks for what happened. `sockets_of` looks at
        other processes with CAP_SYS_PTRACE.
        """
        self._root = root
        self._every_ns = every_ns
        self._daemons = [
            ContainerDaemon(root, runtime, path, history_ns=history_ns) for runtime, path in sockets
        ]
        self._makers = MakerSearch(root, [path for _, path in sockets], realtime, sockets_of)
        # A watch takes seconds, and states and events are not to wait for it.
        self._watch: Background[dict[str, ContainerMaker]] = Background("makers")
        self._starts: list[ContainerEvent] = []
        self._made_by: dict[str, ContainerMaker] = {}
        self._reported_makers: set[str] = set()
        self._pod_logs = PodLogs(root)
        self._static_pods = StaticPods(root)
        self._pod_owners = PodOwnerEvents()
        self._realtime = realtime
        self._bundles: dict[str, oci_bundle.BundleNames] = {}
        self._work: Background[_Round] = Background("containers")
        self._next_ns = 0
        self._last_states: dict[str, ContainerState] = {}
        self._logged: dict[tuple[str, str], LoggedContainer] | None = None
        self._written: dict[str, ContainerState] = {}
        self._trouble: NecroscopeError | None = None
        self.has_answered = False
        """Whether any round has come to its end, well or not."""

    def start_segment(self) -> None:
        """The next round writes every container, so that the segment explains itself."""
        self._written.clear()
        self._reported_makers.clear()
        self._pod_owners.start_segment()
        self._next_ns = self.idle_until_ns = 0

    def read(self, now: Moment) -> Reading:
        reading = Reading()
        try:
            finished = self._work.take()
        except NecroscopeError as error:
            finished, self._trouble, self.tables = None, error, _WITH_EVENTS
            self.has_answered = True
        if finished is not None:
            self._take(finished, reading)
        made = self._find_makers(now)
        if made:
            reading.rows["events"] = [*reading.rows.get("events", []), *made]
        if self._work.is_idle and now.monotonic_ns >= self._next_ns:
            self._next_ns = now.monotonic_ns + self._every_ns
            realtime_ns = self._realtime()
            found = _Round(now, shift_ns(now.time_ns, realtime_ns))
            self._work.start(lambda: self._round(found, realtime_ns))
        reading.trouble = self._work.trouble or self._trouble
        if self._work.trouble is not None:
            self.tables = _WITH_EVENTS
        is_idle = self._work.is_idle and self._watch.is_idle
        self.idle_until_ns = self._next_ns if is_idle else 0
        return reading

    def close(self) -> None:
        self._work.close()
        self._watch.close()

    def _round(self, found: _Round, realtime_ns: int) -> _Round:
        """In the thread."""
        for daemon in self._daemons:
            if daemon.is_there():
                try:
                    found.looks.append(daemon.look(realtime_ns))
                except NecroscopeError as error:
                    found.causes.append(
                        f"{error.facts} ({error.hint})" if error.hint else error.facts
                    )
                    found.is_daemon_silent = True
        try:
            found.running = read_running(self._root)
        except SourceUnavailable as error:
            found.causes.append(error.facts)
        found.logged, left_out = self._pod_logs.read()
        found.static_files = self._static_pods.read() if found.logged else {}
        found.causes += [cause for look in found.looks for cause in look.causes]
        left_out += sum(look.left_out for look in found.looks)
        if left_out:
            found.causes.append(f"{left_out} containers beyond the limit were not read")
        for container, state in (found.running or {}).items():
            if container not in self._bundles and state.runtime not in ("docker", "lxc", "machine"):
                self._bundles[container] = oci_bundle.read(self._root, container)
        if len(self._bundles) > _BUNDLES_LIMIT:
            self._bundles = {
                container: self._bundles[container]
                for container in self._bundles
                if container in (found.running or {})
            }
        return found

    def _search_makers(
        self, starts: list[ContainerEvent], since_ns: int
    ) -> dict[str, ContainerMaker]:
        """In the thread of the watch."""
        for event in starts:
            self._makers.saw_start(event.name, event.container, event.time_ns)
        seconds = _MAKERS_RATIO * self._every_ns / NS_PER_S
        self._makers.search(seconds, since_ns)
        return dict(self._makers.found)

    def _find_makers(self, now: Moment) -> list[Row]:
        """Who makes what is re-created, as far as was seen by now."""
        try:
            self._made_by |= self._watch.take() or {}
        except NecroscopeError as error:
            self._trouble = error
        since_ns = self._realtime() - _RECREATED_NS
        if self._watch.is_idle and (self._starts or now.monotonic_ns >= self._next_ns):
            starts, self._starts = self._starts, []
            if starts or self._makers.wanted(since_ns):
                self._watch.start(lambda: self._search_makers(starts, since_ns))
        new = self._made_by.keys() - self._reported_makers
        self._reported_makers |= new
        return [made_event(name, self._made_by[name], now.time_ns) for name in sorted(new)]

    def _take(self, found: _Round, reading: Reading) -> None:
        self.has_answered = True
        now_ns = found.asked_at.time_ns
        events: list[Row] = []
        for look in found.looks:
            self._last_states |= {
                state.container: self._on_timeline(state, found)
                for state in look.states
                if state.container
            }
            for container, state in list(self._last_states.items()):
                if state.runtime == look.runtime and container not in look.present:
                    del self._last_states[container]
            events += daemon_events(look.events, look.runtime, found.ahead_ns)
            starts = [event for event in look.events if event.kind == "container_start"]
            self._starts = [*self._starts, *starts][-_STARTS_LIMIT:]
        events += self._restarts(found, now_ns)
        states = self._lay_together(found)
        events += self._pod_owners.events(states.values(), found.static_files, now_ns)
        rows = [
            state.row(now_ns) for key, state in states.items() if self._written.get(key) != state
        ]
        rows += [
            gone._replace(state=_GONE, pid=None).row(now_ns)
            for key, gone in self._written.items()
            if key not in states
        ]
        self._written = states
        reading.rows = {"containers": rows, "events": events}
        self._trouble = SourceUnavailable("; ".join(found.causes)) if found.causes else None
        self.tables = _WITH_EVENTS if found.is_daemon_silent else _ONLY_STATES

    def _on_timeline(self, state: ContainerState, found: _Round) -> ContainerState:
        """On the recording's time line."""
        ahead_ns = found.ahead_ns
        return state._replace(
            started_ns=state.started_ns + ahead_ns if state.started_ns is not None else None,
            finished_ns=state.finished_ns + ahead_ns if state.finished_ns is not None else None,
        )

    def _restarts(self, found: _Round, now_ns: int) -> list[Row]:
        before, self._logged = (
            self._logged,
            {(item.pod_uid, item.name): item for item in found.logged},
        )
        if before is None:
            return []
        return [
            restart_event(before[key], after, now_ns, found.ahead_ns)
            for key, after in self._logged.items()
            if key in before and after.restarts > before[key].restarts
        ]

    def _lay_together(self, found: _Round) -> dict[str, ContainerState]:
        """By id; a container without a known id by its pod and name."""
        running = found.running or {}
        states = {container: self._with_names(state) for container, state in running.items()}
        for container, last in self._last_states.items():
            states[container] = (
                last._replace(cgroup=running[container].cgroup) if container in running else last
            )
        for logged in found.logged:
            key = logged.container or f"{logged.pod_uid}/{logged.name}"
            is_unseen = found.running is not None and logged.container is not None
            known = states.get(
                key,
                ContainerState(
                    logged.container, "kubernetes", state="exited" if is_unseen else None
                ),
            )
            states[key] = known._replace(
                name=logged.name,
                namespace=logged.namespace,
                pod=logged.pod,
                pod_uid=logged.pod_uid,
                restarts=logged.restarts,
                started_ns=known.started_ns or logged.restarted_ns + found.ahead_ns,
            )
        return states

    def _with_names(self, state: ContainerState) -> ContainerState:
        names = self._bundles.get(state.container or "")
        if names is None:
            return state
        return state._replace(
            name=names.name,
            image=names.image,
            namespace=names.namespace,
            pod=names.pod,
            pod_uid=names.pod_uid or state.pod_uid,
            owner_labels=names.owner_labels,
        )
