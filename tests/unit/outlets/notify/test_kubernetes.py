"""Condition and Event against a server that speaks that part of the Kubernetes API, over TLS with
the service account's files.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.drawn_node import at
from tests.kubernetes_api import TOKEN, KubernetesApi
from tests.receiving_server import ReceivingServer, make_certificate, receiving_server
from tests.unit.outlets.notify.conftest import MakeEntry

from necroscope.errors import UsageError
from necroscope.fleet.request import DeliveryError
from necroscope.outlets.notify.kubernetes import (
    Condition,
    Kubernetes,
    event_as_json,
    reason_of,
    text_of,
)
from necroscope.outlets.notify.node_condition import NodeCondition
from necroscope.outlets.notify.outbox import Letter


@pytest.fixture
def api() -> KubernetesApi:
    return KubernetesApi("node-a")


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text(TOKEN)
    return tmp_path


@pytest.fixture
def server(api: KubernetesApi, credentials: Path) -> Iterator[ReceivingServer]:
    with receiving_server(make_certificate(credentials)) as server:
        server.reply = api
        yield server


@pytest.fixture
def cluster(server: ReceivingServer, credentials: Path) -> Kubernetes:
    return Kubernetes.in_pod("node-a", server.url, credentials)


def test_an_event_tells_of_the_incident(
    cluster: Kubernetes, api: KubernetesApi, entry: MakeEntry
) -> None:
    cluster.deliver(Letter(entry(), at(20)), at(30))
    (event,) = api.events.values()
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Node",
        "name": "node-a",
        "uid": "node-a",
    }
    assert (event["type"], event["reason"]) == ("Warning", "ZombieMemcgWalk")
    assert (
        event["message"]
        == "core 1: a walk over dead cgroups held the core. kubelet walked 68,680 dead cgroups"
    )
    assert event["firstTimestamp"] == "2025-10-09T08:53:30Z"


def test_what_was_left_out_before_is_said(entry: MakeEntry) -> None:
    message = event_as_json(Letter(entry(), at(20), 7), "node-a", at(30))["message"]
    assert message.endswith("dead cgroups (7 incidents before it were not reported)")


def test_a_second_try_of_an_event_that_arrived_is_delivered(
    cluster: Kubernetes, api: KubernetesApi, entry: MakeEntry
) -> None:
    for _ in range(2):
        cluster.deliver(Letter(entry(), at(20)), at(30))
    cluster.deliver(Letter(entry(id="another"), at(20)), at(30))
    assert len(api.events) == 2


def test_a_condition_is_set_beside_those_of_others(cluster: Kubernetes, api: KubernetesApi) -> None:
    cluster.set_condition(Condition(True, "RtHog", "core 3 was held", at(10)), at(30))
    assert api.condition("node-a") == {
        "type": "CoreStarved",
        "status": "True",
        "reason": "RtHog",
        "message": "core 3 was held",
        "lastHeartbeatTime": "2025-10-09T08:53:50Z",
        "lastTransitionTime": "2025-10-09T08:53:30Z",
    }
    assert api.condition("node-a", "Ready")["status"] == "True"


def test_a_token_that_the_kubelet_replaced_is_used(
    cluster: Kubernetes, api: KubernetesApi, credentials: Path, entry: MakeEntry
) -> None:
    api.token = "new"
    with pytest.raises(DeliveryError, match="answered 401"):
        cluster.deliver(Letter(entry(), at(20)), at(30))
    (credentials / "token").write_text("new\n")
    cluster.deliver(Letter(entry(), at(20)), at(30))
    assert len(api.events) == 1
    (credentials / "token").unlink()
    with pytest.raises(DeliveryError, match="cannot read the token"):
        cluster.deliver(Letter(entry(), at(20)), at(30))


def test_a_refusal_says_what_was_refused_and_not_the_token(
    server: ReceivingServer, credentials: Path
) -> None:
    other = Kubernetes.in_pod("node-b", server.url, credentials)
    with pytest.raises(
        DeliveryError, match=r"node condition: answered 404.*node-b.* not found"
    ) as caught:
        other.set_condition(Condition(False, "NoCoreStarved", "well", at(0)), at(0))
    assert TOKEN not in caught.value.facts


def test_another_servers_certificate_gets_no_token(server: ReceivingServer, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    make_certificate(elsewhere)
    (elsewhere / "token").write_text(TOKEN)
    with pytest.raises(DeliveryError, match="certificate verify failed"):
        Kubernetes.in_pod("node-a", server.url, elsewhere).set_condition(
            Condition(True, "A", "b", at(0)), at(0)
        )
    assert server.received == []


def test_in_a_pod_the_environment_names_the_server(
    monkeypatch: pytest.MonkeyPatch, credentials: Path
) -> None:
    make_certificate(credentials)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    endpoint = Kubernetes.in_pod("node-a", credentials=credentials)._endpoint
    assert (endpoint.host, endpoint.port, endpoint.context is not None) == ("fd00::1", 6443, True)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(UsageError, match="this is not a pod"):
        Kubernetes.in_pod("node-a", credentials=credentials)


@pytest.mark.parametrize("name", ["", "Node-A", "../other", "a/b", "-a", "a" * 300, "a\n"])
def test_a_name_that_would_lead_elsewhere_is_refused(name: str, credentials: Path) -> None:
    with pytest.raises(UsageError, match="is not a valid name of a Kubernetes node"):
        Kubernetes.in_pod(name, "http://127.0.0.1:1", credentials)


def test_long_and_hostile_texts_fit(
    api: KubernetesApi, cluster: Kubernetes, entry: MakeEntry
) -> None:
    hostile = entry(title="é\x1b\n" * 2000, cause="../../x-y")
    assert len(text_of(hostile.incident).encode()) <= 950
    assert reason_of(hostile.incident) == "XY"
    assert reason_of(entry(cause="").incident) == "Unknown"
    cluster.deliver(Letter(hostile, at(20)), at(30))
    assert len(api.events) == 1
    long_name = "n" * 250 + ".x"
    assert len(event_as_json(Letter(entry(), at(20)), long_name, at(30))["metadata"]["name"]) <= 253


def test_the_condition_is_sent_when_it_changes_and_every_five_minutes(
    entry: MakeEntry,
) -> None:
    sent: list[tuple[bool, str, int]] = []
    condition = NodeCondition(clear_after_ns=600 * 10**9)

    def tell(second: float) -> None:
        condition.tell(
            at(second), lambda what, _: sent.append((what.is_true, what.reason, what.since_ns))
        )

    tell(0)
    tell(100)
    tell(300)
    assert sent == [(False, "NoCoreStarved", at(0))] * 2
    condition.note(entry(290, 310).incident, 10 * 10**9, at(320))
    tell(320)
    condition.note(entry(400, 410, cause="rt-hog").incident, 10 * 10**9, at(420))
    tell(420)
    assert sent[2:] == [(True, "ZombieMemcgWalk", at(320)), (True, "RtHog", at(320))]
    tell(1009)
    tell(1011)
    assert sent[4:] == [(True, "RtHog", at(320)), (False, "NoCoreStarved", at(1011))]


def test_a_condition_that_was_not_taken_is_sent_again_and_survives_a_restart(
    entry: MakeEntry,
) -> None:
    condition = NodeCondition(clear_after_ns=600 * 10**9)
    condition.note(entry(10, 20).incident, 10 * 10**9, at(30))

    def refuse(*_: object) -> None:
        raise DeliveryError("no")

    with pytest.raises(DeliveryError):
        condition.tell(at(30), refuse)
    again = NodeCondition(clear_after_ns=600 * 10**9)
    again.restore(condition.as_json())
    sent: list[Condition] = []
    again.tell(at(31), lambda what, _: sent.append(what))
    third = NodeCondition(clear_after_ns=600 * 10**9)
    third.restore(again.as_json())
    third.tell(at(40), lambda what, _: sent.append(what))
    assert [(one.is_true, one.since_ns) for one in sent] == [(True, at(31)), (True, at(31))]
