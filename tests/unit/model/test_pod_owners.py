"""Who made a pod, by its labels, its uid and its name."""

import pytest

from necroscope.model.pod_owners import STATIC, owner_labels, pod_owner

UID = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"


@pytest.mark.parametrize(
    ("pod", "labels", "owner"),
    [
        ("web-5d4f8c7b9-x2kqz", {"pod-template-hash": "5d4f8c7b9"}, ("Deployment", "web")),
        ("agent-x2kqz", {"controller-revision-hash": "6f8d9c5b7"}, ("DaemonSet", "agent")),
        ("db-0", {"controller-revision-hash": "db-6f8d9c5b7"}, ("StatefulSet", "db")),
        ("train-x2kqz", {"job-name": "train"}, ("Job", "train")),
        (
            "sync-29391840-x2kqz",
            {"batch.kubernetes.io/job-name": "sync-29391840"},
            ("Job", "sync-29391840"),
        ),
    ],
)
def test_labels_tell_the_controller(
    pod: str, labels: dict[str, str], owner: tuple[str, str]
) -> None:
    found = pod_owner(pod, UID, owner_labels(labels | {"app": "x"}))
    assert found is not None
    assert found[:2] == owner
    assert "its label" in found.how


@pytest.mark.parametrize(
    ("pod", "owner"),
    [
        ("web-5d4f8c7b9-x2kqz", ("Deployment", "web")),
        ("agent-x2kqz", ("DaemonSet or Job", "agent")),
        ("db-12", ("StatefulSet", "db")),
    ],
)
def test_without_labels_the_form_of_the_name_tells_and_it_is_said_so(
    pod: str, owner: tuple[str, str]
) -> None:
    found = pod_owner(pod, UID)
    assert found is not None
    assert found[:2] == owner
    assert found.how == "the form of its name"


@pytest.mark.parametrize("pod", ["debug", "my-pod", "node-shell", ""])
def test_a_pod_that_somebody_made_by_hand_has_no_owner(pod: str) -> None:
    assert pod_owner(pod, UID) is None


@pytest.mark.parametrize(
    "labels", [{"pod-template-hash": "other"}, {"job-name": "kube-proxy"}, {"job-name": ""}]
)
def test_a_label_that_does_not_fit_the_name_accuses_nobody(labels: dict[str, str]) -> None:
    assert pod_owner("debug", UID, owner_labels(labels)) is None


def test_a_uid_without_dashes_is_of_the_kubelets_own_pod() -> None:
    found = pod_owner("etcd-node1", UID.replace("-", ""), (("job-name", "etcd"),))
    assert found is not None
    assert found[:2] == (STATIC, "etcd-node1")


def test_hostile_labels_are_made_printable() -> None:
    assert owner_labels({"job-name": "a\x1b[2J"}) == (("job-name", "a\\x1b[2J"),)
