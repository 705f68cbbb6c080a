"""From a container to its pod and what made that."""

import json
from typing import Any

import pytest
from tests.drawn_node import DrawnNode, at, drawn_node

from necroscope.analysis.node import Node
from necroscope.analysis.pod_chain import pod_maker, with_pod
from necroscope.analysis.report import Origin

UID = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
AGENT = Origin("container", "agent")


def node(pod: str | None = "agent-x2kqz", uid: str = UID) -> DrawnNode:
    drawn = drawn_node("core 0: " + "." * 60)
    names: dict[str, Any] = {"namespace": "kube-system", "pod": pod, "pod_uid": uid}
    drawn.add("containers", 3, container="a" * 64, name="agent", **names)
    return drawn


def made_by(drawn: DrawnNode, kind: str, owner: str, file: str | None = None) -> None:
    fields = {"pod_uid": UID, "owner_kind": kind, "owner": owner, "how": "its label", "file": file}
    drawn.add("events", 4, kind="pod_owner", fields=json.dumps(fields))


def chain(drawn: DrawnNode, origin: Origin = AGENT) -> tuple[tuple[str, str], ...]:
    return with_pod(Node(drawn, (at(0), at(60))), origin).chain


def test_a_container_leads_to_its_pod_and_its_daemon_set() -> None:
    drawn = node()
    made_by(drawn, "DaemonSet", "agent")
    assert chain(drawn) == (
        ("pod", "kube-system/agent-x2kqz"),
        ("DaemonSet", "kube-system/agent"),
    )


def test_a_static_pod_leads_to_its_file() -> None:
    drawn = node("etcd-node1")
    made_by(drawn, "static pod", "etcd-node1", "/etc/kubernetes/manifests/etcd.yaml")
    assert chain(drawn) == (
        ("pod", "kube-system/etcd-node1"),
        ("file", "/etc/kubernetes/manifests/etcd.yaml"),
    )


def test_without_an_event_the_form_of_the_name_tells() -> None:
    assert chain(node("web-5d4f8c7b9-x2kqz"))[1] == ("Deployment", "kube-system/web")
    assert chain(node("debug")) == (("pod", "kube-system/debug"),)


def test_what_is_of_no_pod_stays_as_it_is() -> None:
    assert chain(node(None)) == ()
    assert chain(node(), Origin("unit", "agent")) == ()


@pytest.mark.parametrize(
    ("kind", "file", "words"),
    [
        ("DaemonSet", None, "kubectl -n kube-system delete daemonset agent"),
        ("static pod", "/etc/x.yaml", "move /etc/x.yaml away"),
    ],
)
def test_the_hint_acts_on_what_made_the_pod(kind: str, file: str | None, words: str) -> None:
    fields = {"pod_uid": UID, "owner_kind": kind, "owner": "agent", "how": "h", "file": file}
    event = {"kind": "pod_owner", "fields": json.dumps(fields)}
    assert words in pod_maker("kube-system", "agent-x2kqz", UID, [event]).hint()


def test_of_an_owner_that_is_only_guessed_nothing_is_deleted() -> None:
    assert "delete" not in pod_maker("kube-system", "agent-x2kqz", UID, []).hint()


def test_names_that_a_shell_would_run_are_quoted() -> None:
    maker = pod_maker("a;reboot", "web-5d4f8c7b9-x2kqz $(id)", UID, [])
    assert "-n 'a;reboot' describe pod 'web-5d4f8c7b9-x2kqz $(id)'" in maker.hint()


def test_a_static_pod_without_a_known_file_is_only_looked_at() -> None:
    maker = pod_maker("kube-system", "etcd-node1", "0" * 32, [])
    assert maker.hint() == "kubectl -n kube-system describe pod etcd-node1"
