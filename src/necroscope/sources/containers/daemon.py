"""One container daemon: what its containers are, and what happened to them since the last look.

A look is the list, the events since the last look, and an inspection of what these two say has changed.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.units import NS_PER_S
from necroscope.sources.containers import docker_api
from necroscope.sources.containers.container_state import ContainerState
from necroscope.sources.containers.docker_api import ContainerEvent, Listed
from necroscope.sources.daemon_socket import DaemonSocket, is_there
from necroscope.sources.http_get import http_get

TIMEOUT_S: Final = 5.0
CONTAINER_LIMIT: Final = 1_000
_INSPECT_LIMIT: Final = 200
_ANSWER_BYTES: Final = 16 << 20
_NOT_FOUND: Final = 404
# The database may lie elsewhere: at the latest after this Podman is asked anyway.
_ANYWAY_NS: Final = 60 * NS_PER_S
PODMAN_SOCKET: Final = "/run/podman/podman.sock"
# Podman writes every change of a container into its database before the change is over.
_PODMAN_DATABASES: Final = ("var/lib/containers/storage/libpod/bolt_state.db", "var/lib/containers/storage/db.sql")


@dataclass(slots=True)
class Look:
    """`states` are those that changed; `present` the ids of all there are."""

    runtime: str
    states: list[ContainerState] = field(default_factory=list)
    events: list[ContainerEvent] = field(default_factory=list)
    present: set[str] = field(default_factory=set)
    left_out: int = 0


class ContainerDaemon:
    """Reached at a socket file of the node. Times are the daemon's, which is the machine's clock."""

    def __init__(self, root: Path, runtime: str, path: str, timeout_s: float = TIMEOUT_S) -> None:
        self.runtime = runtime
        self._root = root
        self._path = path
        self._timeout_s = timeout_s
        self._since_ns: int | None = None
        self._told: set[tuple[int, str, str]] = set()
        self._listed: dict[str, Listed] = {}
        self._waiting: dict[str, None] = {}
        self._database_mark: tuple[int, ...] | None = None
        self._last = Look(runtime)

    def is_there(self) -> bool:
        return is_there(self._root, self._path)

    def look(self, realtime_ns: int) -> Look:
        """`realtime_ns` is the machine's clock now."""
        try:
            return self._look(realtime_ns)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SourceUnavailable(f"{self._path} answers in an unknown form: {error!r}") from None

    def _look(self, realtime_ns: int) -> Look:
        mark = self._mark()
        is_fresh = self._since_ns is not None and realtime_ns - self._since_ns < _ANYWAY_NS
        if mark is not None and mark == self._database_mark and is_fresh:
            return replace(self._last, states=[], events=[])
        look = Look(self.runtime)
        listed = docker_api.parse_list(self._get(docker_api.LIST))
        look.left_out = max(0, len(listed) - CONTAINER_LIMIT)
        found = {item.container: item for item in listed[:CONTAINER_LIMIT]}
        look.events = self._events(realtime_ns)
        changed = [container for container, item in found.items() if self._listed.get(container) != item]
        self._inspect([*self._waiting, *changed, *(event.container for event in look.events)], found, look)
        self._listed, self._database_mark, self._last = found, mark, look
        look.present = set(found)
        return look

    def _mark(self) -> tuple[int, ...] | None:
        """A socket that systemd listens on starts a Podman for each question: so it is asked only when something changed."""
        if self._path != PODMAN_SOCKET or self._waiting:
            return None
        marks = []
        for name in _PODMAN_DATABASES:
            try:
                marks.append(os.stat(self._root / name).st_mtime_ns)
            except OSError:
                continue
        return tuple(marks) or None

    def _events(self, realtime_ns: int) -> list[ContainerEvent]:
        """Those not told yet; an event may be booked a little after its time, so each look goes back a second."""
        since_ns, self._since_ns = self._since_ns, realtime_ns
        if since_ns is None:
            return []
        is_podman = self.runtime == "podman"
        answer = self._get(docker_api.events_target(since_ns - NS_PER_S, realtime_ns, is_podman=is_podman))
        events = [
            event
            for event in docker_api.parse_events(answer)
            if event[:3] not in self._told and event.time_ns >= since_ns - NS_PER_S
        ]
        self._told = {event[:3] for event in events} | {told for told in self._told if told[0] >= since_ns - NS_PER_S}
        return events

    def _inspect(self, containers: Iterable[str], found: dict[str, Listed], look: Look) -> None:
        """What is beyond the limit waits for the next look."""
        wanted = [container for container in dict.fromkeys(containers) if container in found]
        self._waiting = dict.fromkeys(wanted[_INSPECT_LIMIT:])
        for container in wanted[:_INSPECT_LIMIT]:
            status, body = self._ask(docker_api.inspect_target(container))
            if status != _NOT_FOUND:
                look.states.append(docker_api.parse_inspect(body, self.runtime))

    def _get(self, target: str) -> bytes:
        status, body = self._ask(target)
        if status != 200:
            raise SourceUnavailable(f"{self._path} answers {status} to {target.partition('?')[0]}")
        return body

    def _ask(self, target: str) -> tuple[int, bytes]:
        return http_get(lambda: DaemonSocket.connect_unix(self._root, self._path, self._timeout_s, _ANSWER_BYTES), target)
