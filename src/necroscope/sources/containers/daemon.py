"""One container daemon: what its containers are, and what happened to them since the last look.

A look is the list, the events since the last look, and an inspection of what these two say has
changed. One that fails tells nothing, and the next one asks for the same again. A container that
cannot be inspected is listed by its name, and the others go on.
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
from necroscope.sources.containers.docker_api import ContainerEvent, ListedContainer
from necroscope.sources.daemon_socket import DaemonSocket, is_there
from necroscope.sources.http_get import http_get

TIMEOUT_S: Final = 5.0
CONTAINER_LIMIT: Final = 1_000
_INSPECT_LIMIT: Final = 200
# Each may cost the whole time limit: after this many the rest waits for the next look.
_STUCK_LIMIT: Final = 3
# After a long silence no more is asked for: an answer must fit into its limits of time and size.
_EVENTS_BACK_NS: Final = 300 * NS_PER_S
_ANSWER_BYTES: Final = 16 << 20
_NOT_FOUND: Final = 404
# The database may lie elsewhere: at the latest after this Podman is asked anyway.
_ANYWAY_NS: Final = 60 * NS_PER_S
PODMAN_SOCKET: Final = "/run/podman/podman.sock"
# Podman writes every change of a container into its database before the change is over.
_PODMAN_DATABASES: Final = (
    "var/lib/containers/storage/libpod/bolt_state.db",
    "var/lib/containers/storage/db.sql",
)
_UNKNOWN_FORM: Final = (KeyError, TypeError, ValueError, AttributeError)

_EventKey = tuple[int, str, str]


@dataclass(slots=True)
class DaemonLook:
    """`states` are those that changed; `present` the ids of all there are; `causes` say which could
    not be inspected, and why.
    """

    runtime: str
    states: list[ContainerState] = field(default_factory=list)
    events: list[ContainerEvent] = field(default_factory=list)
    present: set[str] = field(default_factory=set)
    left_out: int = 0
    causes: list[str] = field(default_factory=list)


class ContainerDaemon:
    """Reached at a socket file of the node. Times are the daemon's, which is the machine's
    clock.
    """

    def __init__(
        self,
        root: Path,
        runtime: str,
        path: str,
        timeout_s: float = TIMEOUT_S,
        history_ns: int = 0,
    ) -> None:
        """`history_ns`: how far back the first look asks for events."""
        self.runtime = runtime
        self.path = path
        self._root = root
        self._history_ns = history_ns
        self._timeout_s = timeout_s
        self._since_ns: int | None = None
        self._known_events: set[_EventKey] = set()
        self._listed: dict[str, ListedContainer] = {}
        self._waiting: list[str] = []
        self._stuck: dict[str, str] = {}
        self._database_mark: tuple[int, ...] | None = None
        self._last = DaemonLook(runtime)

    def is_there(self) -> bool:
        return is_there(self._root, self.path)

    def look(self, realtime_ns: int) -> DaemonLook:
        """`realtime_ns` is the machine's clock now."""
        try:
            return self._look(realtime_ns)
        except _UNKNOWN_FORM as error:
            raise self._unknown_form(error) from None

    def _look(self, realtime_ns: int) -> DaemonLook:
        mark = self._mark()
        is_fresh = self._since_ns is not None and realtime_ns - self._since_ns < _ANYWAY_NS
        if mark is not None and mark == self._database_mark and is_fresh:
            return replace(self._last, states=[], events=[])
        look = DaemonLook(self.runtime)
        listed = docker_api.parse_list(self._get(docker_api.LIST))
        look.left_out = max(0, len(listed) - CONTAINER_LIMIT)
        found = {item.container: item for item in listed[:CONTAINER_LIMIT]}
        look.events, known = self._events(realtime_ns)
        changed = [
            container for container, item in found.items() if self._listed.get(container) != item
        ]
        self._inspect(
            [*self._waiting, *changed, *(event.container for event in look.events)], found, look
        )
        self._since_ns, self._known_events = realtime_ns, known
        self._listed, self._database_mark, self._last = found, mark, look
        look.present = set(found)
        return look

    def _mark(self) -> tuple[int, ...] | None:
        """A socket that systemd listens on starts a Podman for each question: so it is asked only
        when something changed.
        """
        if self.path != PODMAN_SOCKET or self._waiting:
            return None
        marks = []
        for name in _PODMAN_DATABASES:
            try:
                marks.append(os.stat(self._root / name).st_mtime_ns)
            except OSError:
                continue
        return tuple(marks) or None

    def _events(self, realtime_ns: int) -> tuple[list[ContainerEvent], set[_EventKey]]:
        """Events not reported yet, and the keys of those known then. An event may be booked a
        little after its time, so it goes back a second.
        """
        since_ns = self._since_ns
        if since_ns is None:
            if not self._history_ns:
                return [], set()
            since_ns = realtime_ns - self._history_ns
        from_ns = max(since_ns, realtime_ns - _EVENTS_BACK_NS) - NS_PER_S
        answer = self._get(
            docker_api.events_target(from_ns, realtime_ns, is_podman=self.runtime == "podman")
        )
        events = [
            event
            for event in docker_api.parse_events(answer)
            if event[:3] not in self._known_events and event.time_ns >= from_ns
        ]
        return events, {event[:3] for event in events} | {
            key for key in self._known_events if key[0] >= from_ns
        }

    def _inspect(
        self, containers: Iterable[str], found: dict[str, ListedContainer], look: DaemonLook
    ) -> None:
        """What is beyond the limit waits for the next look. What was stuck comes last: it keeps no
        other from being told.
        """
        wanted = sorted(
            (one for one in dict.fromkeys(containers) if one in found), key=self._stuck.__contains__
        )
        stuck = {one: cause for one, cause in self._stuck.items() if one in found}
        failed: list[str] = []
        done = 0
        while done < min(len(wanted), _INSPECT_LIMIT) and len(failed) < _STUCK_LIMIT:
            container = wanted[done]
            done += 1
            stuck.pop(container, None)
            try:
                look.states += self._states(container)
            except SourceUnavailable as error:
                failed.append(container)
                stuck[container] = f"container {found[container].name}: {error.facts}"
        self._waiting, self._stuck = [*wanted[done:], *failed], stuck
        look.causes = _shorten(sorted(stuck.values()))

    def _states(self, container: str) -> list[ContainerState]:
        """Its state; nothing if it is gone by now."""
        target = docker_api.inspect_target(container)
        status, body = self._ask(target)
        if status == _NOT_FOUND:
            return []
        try:
            return [docker_api.parse_inspect(self._check(status, body, target), self.runtime)]
        except _UNKNOWN_FORM as error:
            raise self._unknown_form(error) from None

    def _get(self, target: str) -> bytes:
        return self._check(*self._ask(target), target)

    def _check(self, status: int, body: bytes, target: str) -> bytes:
        if status != 200:
            raise SourceUnavailable(f"{self.path} answers {status} to {target.partition('?')[0]}")
        return body

    def _unknown_form(self, error: Exception) -> SourceUnavailable:
        return SourceUnavailable(f"{self.path} answers in an unknown form: {error!r}")

    def _ask(self, target: str) -> tuple[int, bytes]:
        return http_get(
            lambda: DaemonSocket.connect_unix(
                self._root, self.path, self._timeout_s, _ANSWER_BYTES
            ),
            target,
        )


def _shorten(causes: list[str]) -> list[str]:
    left_out = len(causes) - _STUCK_LIMIT
    return [*causes[:_STUCK_LIMIT], *([f"{left_out} containers more"] if left_out > 0 else [])]
