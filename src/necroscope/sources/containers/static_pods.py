"""The files of a kubelet's own pods: `staticPodPath` of its settings, /etc/kubernetes/manifests by
default (pkg/kubelet/config/file_linux.go).

The kubelet makes a pod NAME-NODE of a file whose metadata has NAME. A file is found by that name;
nothing else in it is read, because manifests hold secrets.
"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from necroscope.model.names import LINE_LIMIT, clean

_DEFAULT: Final = "/etc/kubernetes/manifests"
_SETTINGS: Final = "var/lib/kubelet/config.yaml"
_PATH: Final = re.compile(rb"^staticPodPath:[ \t]*[\"']?(/[^\s\"'#]+)", re.MULTILINE)
_NAME: Final = re.compile(rb"(?P<indent>[ \t]+)name:[ \t]*[\"']?(?P<name>[a-z0-9.-]+)")
_NAME_JSON: Final = re.compile(rb"\"metadata\"\s*:\s*\{[^{}]*\"name\"\s*:\s*\"([a-z0-9.-]+)\"")
_LIMIT_BYTES: Final = 1 << 18
_FILES: Final = 200


def parse_name(data: bytes) -> str | None:
    """The pod's name in a manifest, YAML or JSON."""
    if data.lstrip()[:1] == b"{":
        match = _NAME_JSON.search(data)
        return match[1].decode() if match else None
    return _parse_yaml(data)


def _parse_yaml(data: bytes) -> str | None:
    """`name` among the lines below `metadata`, as deep as the first of them."""
    lines = iter(data.splitlines())
    if not any(line.rstrip() == b"metadata:" for line in lines):
        return None
    depth: int | None = None
    for line in lines:
        text = line.lstrip(b" \t")
        if not text or text.startswith(b"#"):
            continue
        indent = len(line) - len(text)
        depth = indent if depth is None else depth
        if indent == 0:
            return None
        match = _NAME.match(line) if indent == depth else None
        if match is not None:
            return match["name"].decode()
    return None


class StaticPods:
    """By the name in its manifest, the file. A file is read again when its time stamp changes."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: dict[str, tuple[int, str | None]] = {}

    def read(self) -> dict[str, str]:
        place = self._place()
        try:
            files = sorted(os.listdir(self._root / place.lstrip("/")))[:_FILES]
        except OSError:
            return {}
        # The kubelet leaves hidden files alone.
        paths = [f"{place}/{name}" for name in files if not name.startswith(".")]
        self._names = {path: self._read_name(path) for path in paths}
        return {
            name: clean(path, LINE_LIMIT)
            for path, (_, name) in self._names.items()
            if name is not None
        }

    def _place(self) -> str:
        match = _PATH.search(_read(self._root / _SETTINGS)[1])
        return match[1].decode("utf-8", "replace").rstrip("/") if match else _DEFAULT

    def _read_name(self, path: str) -> tuple[int, str | None]:
        file = self._root / path.lstrip("/")
        known = self._names.get(path)
        try:
            if known is not None and known[0] == os.lstat(file).st_mtime_ns:
                return known
        except OSError:
            return 0, None
        changed_ns, data = _read(file)
        return changed_ns, parse_name(data)


def file_of(pod: str, files: Mapping[str, str]) -> str | None:
    """Of the longest name that the pod's begins with: the rest is the node's."""
    names = [name for name in files if pod.startswith(f"{name}-")]
    return files[max(names, key=len)] if names else None


def _read(path: Path) -> tuple[int, bytes]:
    """When it was changed, and what is in it; nothing of what is not a small regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0, b""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LIMIT_BYTES:
            return status.st_mtime_ns, b""
        return status.st_mtime_ns, os.read(descriptor, _LIMIT_BYTES)
    except OSError:
        return 0, b""
    finally:
        os.close(descriptor)
