"""Who made each pod, as events."""

import json
from typing import Any

from necroscope.sources.containers.container_state import ContainerState
from necroscope.sources.containers.pod_events import PodOwnerEvents

UID = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
LABEL = (("controller-revision-hash", "6f8d9c5b7"),)


def state(pod: str | None = "agent-x2kqz", labels: Any = (), uid: str = UID) -> ContainerState:
    return ContainerState(
        "a" * 64,
        "containerd",
        name="agent",
        namespace="kube-system",
        pod=pod,
        pod_uid=uid,
        owner_labels=labels,
    )


def told(source: PodOwnerEvents, *states: ContainerState) -> list[dict[str, Any]]:
    files = {"etcd": "/etc/kubernetes/manifests/etcd.yaml"}
    return [json.loads(str(row[13])) for row in source.events(states, files, 5)]


def test_a_pods_maker_is_told_once_per_segment() -> None:
    source = PodOwnerEvents()
    (found,) = told(source, state(), state(labels=LABEL))
    assert (found["owner_kind"], found["owner"], found["pod_uid"]) == ("DaemonSet", "agent", UID)
    assert told(source, state(), state(labels=LABEL)) == []
    source.start_segment()
    assert len(told(source, state(labels=LABEL))) == 1


def test_what_the_labels_say_corrects_what_the_name_said() -> None:
    source = PodOwnerEvents()
    (first,) = told(source, state())
    (second,) = told(source, state(), state(labels=LABEL))
    assert (first["owner_kind"], second["owner_kind"]) == ("DaemonSet or Job", "DaemonSet")


def test_a_static_pod_has_its_file() -> None:
    (found,) = told(PodOwnerEvents(), state("etcd-node1", uid=UID.replace("-", "")))
    assert (found["owner_kind"], found["file"]) == (
        "static pod",
        "/etc/kubernetes/manifests/etcd.yaml",
    )


def test_a_container_without_a_pod_and_a_pod_made_by_hand_tell_nothing() -> None:
    assert told(PodOwnerEvents(), state(None), state("debug")) == []
