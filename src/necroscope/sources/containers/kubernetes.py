"""Kubernetes' containers by the names of their logs, which the kubelet and every CRI runtime write
alike:

    /var/log/pods/NAMESPACE_POD_UID/CONTAINER/N.log            N counts the restarts
    (pkg/kubelet/kuberuntime/helpers.go)
    /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log         a symlink to it (legacy.go)

Neither a socket nor a credential is needed. A directory is listed again only when its time stamp
has changed.
"""

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.names import clean

POD_LIMIT: Final = 1_000
CONTAINER_LIMIT: Final = 5_000
_LOG: Final = re.compile(r"(\d{1,9})\.log(?:\..+)?")
_POD_DIRECTORY: Final = re.compile(
    r"(?P<namespace>[^_]+)_(?P<pod>[^_]+)_(?P<uid>[0-9a-fA-F-]{32,36})"
)
_LINK: Final = re.compile(r"[^_]+_[^_]+_.+-(?P<id>[0-9a-f]{64})\.log")
_TARGET: Final = re.compile(
    r".*/(?P<uid>[0-9a-fA-F-]{32,36}|[^/]+_[^/]+_[0-9a-fA-F-]{32,36})/(?P<container>[^/]+)/(?P<number>\d{1,9})\.log"
)


class LoggedContainer(NamedTuple):
    """`restarts` is the highest number of a log, `restarted_ns` when that log was made; the id
    where a link reports it.
    """

    namespace: str
    pod: str
    pod_uid: str
    name: str
    restarts: int
    restarted_ns: int
    container: str | None


def parse_pod_directory(name: str) -> tuple[str, str, str] | None:
    """Namespace, pod and uid."""
    match = _POD_DIRECTORY.fullmatch(name)
    return (
        (clean(match["namespace"]), clean(match["pod"]), match["uid"])
        if match is not None
        else None
    )


def parse_restarts(names: list[str]) -> int | None:
    """From the logs of one container, rotated ones too."""
    numbers = [int(match[1]) for name in names if (match := _LOG.fullmatch(name)) is not None]
    return max(numbers, default=None)


def parse_link(name: str, target: str) -> tuple[tuple[str, str, int], str] | None:
    """((pod uid, container, number of the log), container id)."""
    link, place = _LINK.fullmatch(name), _TARGET.fullmatch(target)
    if link is None or place is None:
        return None
    uid = place["uid"].rpartition("_")[2]
    return (uid, place["container"], int(place["number"])), link["id"]


class PodLogs:
    """Reads the names; bounded in number, and never a byte of a log."""

    def __init__(self, root: Path) -> None:
        self._pods = root / "var/log/pods"
        self._links = root / "var/log/containers"
        self._names: dict[str, tuple[int, list[str]]] = {}
        self._ids: dict[str, tuple[tuple[str, str, int], str] | None] = {}

    def read(self) -> tuple[list[LoggedContainer], int]:
        """The containers, and how many pods and containers were left out."""
        ids = self._read_links()
        pods = [name for name in self._list(self._pods) if parse_pod_directory(name) is not None]
        found: list[LoggedContainer] = []
        left_out = max(0, len(pods) - POD_LIMIT)
        seen = {str(self._pods)}
        for pod in pods[:POD_LIMIT]:
            for name in self._list(self._pods / pod):
                if len(found) >= CONTAINER_LIMIT:
                    left_out += 1
                    continue
                container = self._container(pod, name, ids)
                if container is not None:
                    found.append(container)
                    seen |= {str(self._pods / pod), str(self._pods / pod / name)}
        self._names = {path: names for path, names in self._names.items() if path in seen}
        return found, left_out

    def _container(
        self, pod: str, name: str, ids: dict[tuple[str, str, int], str]
    ) -> LoggedContainer | None:
        parsed, folder = parse_pod_directory(pod), self._pods / pod / name
        restarts = parse_restarts(self._list(folder))
        if parsed is None or restarts is None:
            return None
        made_ns = self._names[str(folder)][0]
        return LoggedContainer(
            *parsed, clean(name), restarts, made_ns, ids.get((parsed[2], name, restarts))
        )

    def _list(self, folder: Path) -> list[str]:
        """The names in it; none if it is gone, is a link, or may not be read."""
        path = str(folder)
        try:
            changed_ns = os.lstat(path).st_mtime_ns
            known = self._names.get(path)
            if known is None or known[0] != changed_ns:
                self._names[path] = (changed_ns, os.listdir(path))
        except OSError:
            self._names.pop(path, None)
            return []
        return self._names[path][1]

    def _read_links(self) -> dict[tuple[str, str, int], str]:
        try:
            names = os.listdir(self._links)[: 2 * CONTAINER_LIMIT]
        except OSError:
            return {}
        self._ids = {
            name: self._ids[name] if name in self._ids else self._read_link(name) for name in names
        }
        return dict(found for found in self._ids.values() if found is not None)

    def _read_link(self, name: str) -> tuple[tuple[str, str, int], str] | None:
        try:
            return parse_link(name, os.readlink(self._links / name))
        except OSError:
            return None
