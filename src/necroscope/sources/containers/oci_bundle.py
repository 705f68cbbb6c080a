"""Names of a running container from the bundle that containerd, CRI-O and Podman keep for it (OCI
runtime-spec, config.json).

The CRI's own socket speaks gRPC and needs root; the annotations in these files say the same.
"""

import json
import os
import stat
from pathlib import Path
from typing import Any, Final, NamedTuple

from necroscope.model.names import clean
from necroscope.model.pod_owners import OwnerLabels, owner_labels

LIMIT_BYTES: Final = 1 << 20
_PLACES: Final = (
    "run/containerd/io.containerd.runtime.v2.task/k8s.io/{}/config.json",
    "run/containerd/io.containerd.runtime.v2.task/default/{}/config.json",
    "run/containers/storage/overlay-containers/{}/userdata/config.json",
)
# containerd's annotations (pkg/cri/annotations), CRI-O's (pkg/annotations).
_KEYS: Final = {
    "name": ("io.kubernetes.cri.container-name", "io.kubernetes.container.name", "nerdctl/name"),
    "pod": ("io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"),
    "namespace": ("io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"),
    "pod_uid": ("io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid"),
    "image": ("io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName"),
}
_TYPES: Final = ("io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType")
# CRI-O's copy of the labels, as JSON: the sandbox has its pod's. containerd keeps none here.
_LABELS: Final = "io.kubernetes.cri-o.Labels"
SANDBOX: Final = "(sandbox)"


class BundleNames(NamedTuple):
    name: str | None = None
    pod: str | None = None
    namespace: str | None = None
    pod_uid: str | None = None
    image: str | None = None
    owner_labels: OwnerLabels = ()


def parse(data: bytes) -> BundleNames:
    """What the annotations say; empty for a file that is not a bundle's."""
    try:
        annotations: Any = json.loads(data).get("annotations") or {}
        found = {
            name: next((clean(str(annotations[key])) for key in keys if key in annotations), None)
            for name, keys in _KEYS.items()
        }
        labels = owner_labels(json.loads(annotations.get(_LABELS) or "{}"))
        is_sandbox = any(annotations.get(key) == "sandbox" for key in _TYPES)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return BundleNames()
    names = BundleNames(**found, owner_labels=labels)
    return names._replace(name=SANDBOX) if is_sandbox else names


def read(root: Path, container: str) -> BundleNames:
    for place in _PLACES:
        data = _read_regular(root / place.format(container))
        if data is not None:
            return parse(data)
    return BundleNames()


def _read_regular(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT_BYTES:
            return None
        return os.read(descriptor, LIMIT_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)
