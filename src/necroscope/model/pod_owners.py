"""Who made a pod, as far as a node can tell without the API server: its labels, its uid, else the
form of its name.

The controllers name and label what they make (kubernetes pkg/controller):

    Deployment    NAME-HASH-xxxxx   pod-template-hash=HASH (deployment/sync.go)
    DaemonSet     NAME-xxxxx        controller-revision-hash=HASH (daemon/daemon_controller.go)
    StatefulSet   NAME-3            controller-revision-hash=NAME-HASH,
                                    statefulset.kubernetes.io/pod-name (stateful_set_utils.go)
    Job           NAME-xxxxx        job-name=NAME (job/job_controller.go)
    the kubelet   NAME-NODE         a uid without dashes: a file of its own, a static pod
                                    (pkg/kubelet/config/common.go)

xxxxx and HASH have only letters and digits that spell no words (apimachinery util/rand). Labels are
what the pod's author wrote: one that does not fit the pod's name is not believed.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from necroscope.model.names import clean

TEMPLATE_HASH: Final = "pod-template-hash"
REVISION_HASH: Final = "controller-revision-hash"
STATEFUL_POD: Final = "statefulset.kubernetes.io/pod-name"
JOB_NAMES: Final = ("batch.kubernetes.io/job-name", "job-name")
_KEPT: Final = (TEMPLATE_HASH, REVISION_HASH, STATEFUL_POD, *JOB_NAMES)
_SAFE: Final = "[bcdfghjklmnpqrstvwxz2456789]"
_OF_REPLICA_SET: Final = re.compile(rf"(?P<name>.+)-(?P<hash>{_SAFE}{{6,10}})-{_SAFE}{{5}}")
_GENERATED: Final = re.compile(rf"(?P<name>.+)-{_SAFE}{{5}}")
_ORDINAL: Final = re.compile(r"(?P<name>.+)-\d{1,5}")
_STATIC_UID: Final = re.compile(r"[0-9a-f]{32}")
STATIC: Final = "static pod"
_FORM: Final = "the form of its name"

# The labels of a pod that tell who made it, by their names.
OwnerLabels = tuple[tuple[str, str], ...]


class PodOwner(NamedTuple):
    """`kind` as Kubernetes calls it; `how` says in words by what it is known."""

    kind: str
    name: str
    how: str

    @property
    def is_guessed(self) -> bool:
        return self.how == _FORM


def owner_labels(labels: Mapping[str, object]) -> OwnerLabels:
    return tuple((name, clean(str(labels[name]))) for name in _KEPT if name in labels)


def pod_owner(pod: str, pod_uid: str | None, labels: OwnerLabels = ()) -> PodOwner | None:
    """None where it is unknown."""
    if pod_uid is not None and _STATIC_UID.fullmatch(pod_uid):
        return PodOwner(STATIC, pod, "a uid as the kubelet gives it to what it reads from a file")
    return _by_labels(pod, dict(labels)) or _by_name(pod)


def _by_labels(pod: str, labels: Mapping[str, str]) -> PodOwner | None:
    template, revision = labels.get(TEMPLATE_HASH), labels.get(REVISION_HASH)
    job = next((labels[name] for name in JOB_NAMES if name in labels), None)
    generated, ordinal = _GENERATED.fullmatch(pod), _ORDINAL.fullmatch(pod)
    if template and generated and generated["name"].endswith(f"-{template}"):
        name = generated["name"].removesuffix(f"-{template}")
        return PodOwner("Deployment", name, f"its label {TEMPLATE_HASH}")
    if job and pod.startswith(f"{job}-"):
        return PodOwner("Job", job, "its label job-name")
    if revision and ordinal and revision.startswith(f"{ordinal['name']}-"):
        return PodOwner("StatefulSet", ordinal["name"], f"its label {REVISION_HASH}")
    if revision and generated:
        return PodOwner("DaemonSet", generated["name"], f"its label {REVISION_HASH}")
    return None


def _by_name(pod: str) -> PodOwner | None:
    replica_set, generated = _OF_REPLICA_SET.fullmatch(pod), _GENERATED.fullmatch(pod)
    if replica_set is not None:
        return PodOwner("Deployment", replica_set["name"], _FORM)
    if generated is not None:
        return PodOwner("DaemonSet or Job", generated["name"], _FORM)
    ordinal = _ORDINAL.fullmatch(pod)
    return PodOwner("StatefulSet", ordinal["name"], _FORM) if ordinal else None
