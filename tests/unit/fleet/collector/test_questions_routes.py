"""Questions over HTTP: who may ask what, the same JSON as of the lake, and no picture that acts for
its reader.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.fleet_lakes import DrawnLake, draw_story, moment
from tests.served_collector import served

from necroscope.errors import NecroscopeError, PermissionMissing, UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.collector.app import create_app
from necroscope.fleet.collector.questions_routes import router
from necroscope.fleet.questions.answer import answer
from necroscope.fleet.request import CollectorClient
from necroscope.fleet.tokens import Grant, Tokens, digest_of

GRANTS = {
    "push": Grant("eu-1", "push"),
    "read": Grant("eu-1", "read"),
    "read-us": Grant("us-1", "read"),
    "read-all": Grant("*", "read"),
}
TOKENS = Tokens({digest_of(token): grant for token, grant in GRANTS.items()})
SPAN = {"since": "2026-04-01", "until": "2026-04-11"}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> DrawnLake:
    path: Path = tmp_path_factory.mktemp("lake")
    story = draw_story(path)
    story.incident("gpu-000", "i1", "zombie-memcg-walk", 3)
    story.fact("gpu-000", "label", "image", "v9", day=5)
    story.event("us-node", "nic_reset", 3, cluster="us-1")
    story.alive("us-node", range(10), cluster="us-1")
    story.fact("us-node", "label", "zone", "secret", cluster="us-1")
    story.write().put(
        "bundles/cluster=eu-1/date=2026-04-03/gpu-000--i1.bundle", b"\x28\xb5\x2f\xfd..."
    )
    return story


@pytest.fixture(scope="module")
def client(drawn: DrawnLake) -> Iterator[httpx.Client]:
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(served(create_app(drawn.lake, TOKENS, routers=(router,))))


def get(
    client: httpx.Client, path: str, token: str | None = "read", **words: str
) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return client.get(f"/v1/{path}", params={**SPAN, **words}, headers=headers)


QUESTIONS = {
    "why": {"event": "nic_reset"},
    "diff": {"a": "gpu-000", "b": "zone=b"},
    "nodes": {"where": "zone=a"},
    "incidents": {},
    "flame": {"where": "zone=a", "baseline": "zone=b"},
    "timeline": {"event": "nic_reset", "by": "zone"},
    "next": {"event": "nic_reset"},
    "baseline": {"expected": "image:*"},
    "trial": {
        "event": "nic_reset",
        "treated": f"eu-1/gpu-001@{moment(2)}, eu-1/gpu-002@{moment(2)}",
        "untreated": f"eu-1/gpu-000@{moment(2)}",
    },
    "change": {"fact": "image=v9", "event": "nic_reset"},
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_answer_is_the_same_as_that_of_the_lake(
    client: httpx.Client, drawn: DrawnLake, name: str
) -> None:
    response = get(client, name, **QUESTIONS[name])
    assert response.status_code == 200
    words = {**SPAN, **QUESTIONS[name]}
    assert response.json() == answer(name, LakeQuestions(drawn.lake, moment(100), ("eu-1",)), words)


@pytest.mark.parametrize("name", QUESTIONS)
def test_only_readers_are_answered(client: httpx.Client, name: str) -> None:
    assert get(client, name, None, **QUESTIONS[name]).status_code == 401
    assert get(client, name, "wrong", **QUESTIONS[name]).status_code == 401
    assert get(client, name, "push", **QUESTIONS[name]).status_code == 403


def test_a_reader_sees_its_own_cluster_only(client: httpx.Client) -> None:
    assert {node["cluster"] for node in get(client, "nodes").json()["nodes"]} == {"eu-1"}
    assert {node["node"] for node in get(client, "nodes", "read-us").json()["nodes"]} == {"us-node"}
    assert len(get(client, "nodes", "read-all").json()["nodes"]) == 61
    assert "secret" not in get(client, "why", event="nic_reset").text
    assert get(client, "bundles/eu-1/2026-04-03/gpu-000--i1.bundle", "read-us").status_code == 403
    assert get(client, "incidents/eu-1/gpu-000/i1", "read-us").status_code == 400


def test_bundles_and_reports_are_handed_out(client: httpx.Client) -> None:
    assert get(client, "bundles/eu-1/2026-04-03/gpu-000--i1.bundle").content.startswith(
        b"\x28\xb5\x2f\xfd"
    )
    assert get(client, "bundles/eu-1/2026-04-03/other.bundle").status_code == 404
    assert get(client, "bundles/eu-1/2026-04-03/tokens.toml").status_code == 400
    assert get(client, "bundles/eu-1/../../x.bundle").status_code in (400, 404)
    assert get(client, "incidents/eu-1/gpu-000/i1").json()["report"] == {"id": "x"}


@pytest.mark.parametrize(
    ("path", "words", "status", "facts"),
    [
        ("why", {"event": "nic_rest"}, 400, "nic_reset"),
        ("why", {}, 400, "one event or one cause"),
        ("nodes", {"where": "zone=("}, 400, "at character 6"),
        ("nodes", {"since": "tomorrow-ish"}, 400, "not a valid moment"),
        ("nodes", {"since": "2026-04-11", "until": "2026-04-01"}, 400, "not before"),
        ("diff", {"a": "gpu-000"}, 422, "b"),
        ("incidents", {"limit": "0"}, 422, "limit"),
        ("nodes", {"where": "x" * 10_000}, 422, "where"),
        ("flame", {"format": "exe"}, 422, "format"),
    ],
)
def test_what_cannot_be_asked_is_reported_with_a_way_out(
    client: httpx.Client, path: str, words: dict[str, str], status: int, facts: str
) -> None:
    response = get(client, path, **words)
    assert response.status_code == status
    assert facts in response.json()["error"] + response.json()["hint"]


@pytest.mark.parametrize(
    ("form", "mark"), [("svg", "<svg"), ("html", "<!doctype html>"), ("folded", "kubelet;entry")]
)
def test_a_picture_comes_as_one_and_may_not_act_for_its_reader(
    client: httpx.Client, form: str, mark: str
) -> None:
    response = get(client, "flame", format=form, where="zone=a")
    assert mark in response.text.lower()
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in response.headers["content-security-policy"]


def test_the_client_gets_the_same_and_turns_refusals_into_errors(client: httpx.Client) -> None:
    url = str(client.base_url)
    found = CollectorClient(url, "read").ask("why", {"event": "nic_reset", **SPAN})
    assert found["outcome"] == "separated"
    with pytest.raises(PermissionMissing, match="wrong"):
        CollectorClient(url, "wrong").ask("nodes", {})
    with pytest.raises(UsageError, match="nic_rest"):
        CollectorClient(url, "read").ask("why", {"event": "nic_rest", **SPAN})
    with pytest.raises(UsageError, match="not a URL"):
        CollectorClient("collector:7443", "read").ask("nodes", {})
    with pytest.raises(UsageError, match="not a URL"):
        CollectorClient("http://collector:port", "read").ask("nodes", {})
    with pytest.raises(NecroscopeError, match="cannot ask"):
        CollectorClient("http://127.0.0.1:9", "read").ask("nodes", {})
    with pytest.raises(NecroscopeError, match="status 404"):
        CollectorClient(f"{url}/elsewhere", "read").ask("nodes", {})


def test_a_timeline_for_dashboards_has_one_row_per_bucket_and_value(client: httpx.Client) -> None:
    words = {"event": "nic_reset", "by": "zone"}
    answer = get(client, "timeline", **words).json()
    rows = get(client, "timeline", **words, format="rows").json()["rows"]
    assert len(rows) == len(answer["starts"]) * len(answer["series"])
    assert sum(row["times"] for row in rows if row["value"] == "a") == sum(
        answer["series"][0]["times"]
    )
    assert {row["time"] for row in rows} == {*answer["starts"]}
