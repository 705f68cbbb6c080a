"""The collector over HTTP, in this process: who is let in, what is taken, and what everybody is
told.
"""

import contextlib
import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter
from tests.fleet_batches import START_NS, made_batch, rows_in, sequences_in
from tests.served_collector import served

from necroscope.fleet.collector.access import CollectorOf, Reader
from necroscope.fleet.collector.admission import DailyQuota, Refusal
from necroscope.fleet.collector.app import create_app
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import LakeError
from necroscope.fleet.lake_tables import DAY_NS
from necroscope.fleet.limits import Limits
from necroscope.fleet.protocol import NODE_HEADER, SENT_HEADER, TIME_HEADER, encode
from necroscope.fleet.tokens import Grant, Tokens, digest_of

GRANTS = {
    "push": Grant("eu-1", "push"),
    "push-17": Grant("eu-1", "push", "gpu-17"),
    "push-us": Grant("us-1", "push"),
    "read": Grant("eu-1", "read"),
    "read-all": Grant("*", "read"),
}
TOKENS = Tokens({digest_of(token): grant for token, grant in GRANTS.items()})
BUNDLE = b"\x28\xb5\x2f\xfd and more"
Started = Callable[..., httpx.Client]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"))


@pytest.fixture
def start(lake: Lake) -> Iterator[Started]:
    """A collector with these options; at the end it is drained."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(
            served(create_app(lake, TOKENS, commit_every_s=0.001, **options))
        )


def push(client: httpx.Client, body: bytes, token: str | None = "push", **headers: str) -> Any:
    known = {"Authorization": f"Bearer {token}"} if token else {}
    return client.post("/v1/batches", content=body, headers={**known, **headers})


def put_bundle(
    client: httpx.Client,
    body: bytes = BUNDLE,
    token: str = "push",
    name: str = "incident-1",
    **headers: str,
) -> Any:
    sent = {
        "Authorization": f"Bearer {token}",
        NODE_HEADER: "gpu-17",
        TIME_HEADER: str(START_NS),
        **headers,
    }
    return client.put(f"/v1/bundles/{name}", content=body, headers=sent)


def test_a_batch_that_is_acknowledged_is_in_the_lake_already(start: Started, lake: Lake) -> None:
    answer = push(start(compact_every_s=3600), encode(made_batch()))
    assert answer.status_code == 200
    found = answer.json()
    assert (found["batch"], found["rows"], found["ignored"]) == ("boot-0", 2, [])
    assert found["arrived_ns"] <= found["answered_ns"]
    assert found["job_deaths"] == []
    assert len(lake.list("inbox")) == 1


def test_what_was_pushed_is_in_the_tables_when_the_collector_has_ended(lake: Lake) -> None:
    with served(create_app(lake, TOKENS, commit_every_s=0.001, compact_every_s=3600)) as client:
        push(client, encode(made_batch("n1", 0, labels={"zone": "a"})))
        push(client, encode(made_batch("n1", 1)), token="push-us")
    assert lake.list("inbox") == []
    assert sequences_in(lake) == [("n1", 0), ("n1", 1)]
    assert {row["cluster"] for row in rows_in(lake)} == {
        "eu-1",
        "us-1",
    }, "the token decides the cluster"


def test_the_clock_at_sending_is_compared_with_the_collector_s(lake: Lake) -> None:
    with served(create_app(lake, TOKENS, commit_every_s=0.001)) as client:
        push(client, encode(made_batch()), **{SENT_HEADER: str(START_NS)})
    [pulse] = rows_in(lake, "pulses")
    assert pulse["clock_offset_ns"] > 365 * 86_400 * 10**9, "this node lives in 2025"


@pytest.mark.parametrize(
    ("token", "status"),
    [(None, 401), ("", 401), ("wrong", 401), ("read", 403), ("push-17", 200), ("push", 200)],
)
def test_only_who_may_push_is_let_in(
    start: Started, lake: Lake, token: str | None, status: int
) -> None:
    answer = push(start(), encode(made_batch("gpu-17")), token)
    assert answer.status_code == status
    assert ("www-authenticate" in answer.headers) == (status == 401)
    assert bool(lake.list("inbox")) == (status == 200)


@pytest.mark.parametrize(
    "header", ["push", "Basic push", "Bearer", "Bearer  push extra", "bearer\tpush"]
)
def test_a_token_in_another_form_is_none(start: Started, header: str) -> None:
    assert (
        start().post("/v1/batches", content=b"", headers={"Authorization": header}).status_code
        == 401
    )


def test_another_node_s_name_is_refused(start: Started, lake: Lake) -> None:
    answer = push(start(), encode(made_batch("gpu-18")), "push-17")
    assert answer.status_code == 403
    assert "gpu-17" in answer.json()["error"]
    assert lake.list("inbox") == []
    assert put_bundle(start(), token="push-17", **{NODE_HEADER: "gpu-18"}).status_code == 403


def test_a_bundles_id_cannot_pass_for_another_nodes(start):
    assert put_bundle(start(), name="x--incident-1").status_code == 400


@pytest.mark.parametrize("body", [b"", b"garbage", gzip.compress(b"{}"), encode(made_batch())[:50]])
def test_garbage_is_400_and_nothing_is_kept(start: Started, lake: Lake, body: bytes) -> None:
    answer = push(start(), body)
    assert answer.status_code == 400
    assert answer.json().keys() == {"error", "hint"}
    assert lake.list("inbox") == []


def test_a_large_body_is_refused_by_what_it_announces(start: Started) -> None:
    client = start(limits=Limits(body_bytes=1000))
    assert push(client, bytes(1001)).status_code == 413


def test_a_large_body_that_announces_nothing_is_cut_off(start: Started) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield bytes(100)

    client = start(limits=Limits(body_bytes=1000))
    assert (
        client.post(
            "/v1/batches", content=endless(), headers={"Authorization": "Bearer push"}
        ).status_code
        == 413
    )


def test_a_zip_bomb_is_413(start: Started) -> None:
    assert push(start(), gzip.compress(bytes(20 << 20))).status_code == 413


def test_a_node_that_comes_too_often_is_reported_when_to_come(start: Started) -> None:
    client = start(limits=Limits(node_burst=2, node_batches_per_s=0.001))
    answers = [push(client, encode(made_batch("n1", number))) for number in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 900 <= int(answers[2].headers["retry-after"]) <= 1000
    assert push(client, encode(made_batch("n2"))).status_code == 200


def test_what_a_node_may_bring_in_a_day_is_bounded_and_others_go_on(start: Started) -> None:
    body = encode(made_batch("n1"))
    client = start(limits=Limits(node_bytes_per_day=5 * len(body) // 2))
    answers = [push(client, encode(made_batch("n1", number))) for number in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert "bytes of today" in answers[2].json()["error"]
    assert put_bundle(client, BUNDLE * 20, **{NODE_HEADER: "n1"}).status_code == 429
    assert push(client, encode(made_batch("n2"))).status_code == 200


def test_files_of_days_long_past_are_bounded(start: Started) -> None:
    """Each table's day is a file of its own in the lake, and every batch here has two of them."""
    client = start(limits=Limits(node_old_days_per_day=5))
    answers = [push(client, encode(made_batch("n1", number))) for number in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]


def test_one_cluster_cannot_take_the_whole_lake(start: Started) -> None:
    client = start(limits=Limits(cluster_share=0.0))
    assert push(client, encode(made_batch("n1"))).status_code == 429


def test_a_new_day_has_a_new_quota() -> None:
    now_ns = [20 * DAY_NS - 1]
    quota = DailyQuota(lambda: now_ns[0])
    quota.take(10, 10, "bytes", "eu-1", "n1")
    with pytest.raises(Refusal) as caught:
        quota.take(1, 10, "bytes", "eu-1", "n1")
    assert caught.value.retry_after_s == 1
    now_ns[0] += 1
    quota.take(10, 10, "bytes", "eu-1", "n1")


def test_a_node_with_a_token_of_its_own_is_stopped_before_its_garbage_is_read(
    start: Started,
) -> None:
    client = start(limits=Limits(node_burst=2, node_batches_per_s=0.001))
    assert [push(client, b"garbage", "push-17").status_code for _ in range(3)] == [400, 400, 429]
    assert push(client, encode(made_batch("n2"))).status_code == 200


def test_a_cluster_that_comes_too_often_is_stopped_before_its_bodies_are_read(
    start: Started,
) -> None:
    client = start(limits=Limits(cluster_burst=1, cluster_batches_per_s=0.001))
    assert [push(client, b"garbage").status_code for _ in range(2)] == [400, 429]
    assert push(client, b"garbage", "push-us").status_code == 400


def test_a_collector_that_is_behind_says_so(start: Started) -> None:
    answer = push(start(limits=Limits(queued_bytes=10)), encode(made_batch()))
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1


def test_a_lake_that_refuses_is_503_in_pushes_and_in_health(
    start: Started, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start()
    real = Lake.put

    def refuse(*_: object) -> None:
        raise LakeError("read-only", "mount it writable")

    monkeypatch.setattr(Lake, "put", refuse)
    for answer in (push(client, encode(made_batch())), put_bundle(client)):
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
        assert answer.json() == {"error": "read-only", "hint": "mount it writable"}
    assert client.get("/healthz").status_code == 503
    assert "lake_writable 0" in client.get("/metrics").text
    monkeypatch.setattr(Lake, "put", real)
    assert push(client, encode(made_batch())).status_code == 200
    assert client.get("/healthz").json()["status"] == "ok"


def test_a_bundle_has_one_place_however_often_it_comes(start: Started, lake: Lake) -> None:
    client = start()
    path = "bundles/cluster=eu-1/date=2025-10-09/gpu-17--incident-1.bundle"
    for _ in range(2):
        assert put_bundle(client).json() == {"bundle": "incident-1", "path": path}
    assert lake.list("bundles") == [path]
    assert lake.read(path) == BUNDLE


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"body": b"no bundle"}, 400),
        ({"body": BUNDLE + bytes(2 << 20)}, 413),
        ({"name": ".."}, 404),
        ({"name": "..%2f..%2fx"}, 404),
        ({"name": "a%00b"}, 400),
        ({NODE_HEADER: "../x"}, 400),
        ({TIME_HEADER: "yesterday"}, 400),
        ({TIME_HEADER: "9" * 30}, 400),
        ({TIME_HEADER: str(4_000_000_000 * 10**9)}, 400),
        ({"token": "read"}, 403),
    ],
)
def test_bundles_that_are_none_are_refused(
    start: Started, lake: Lake, options: dict[str, Any], status: int
) -> None:
    assert put_bundle(start(), **options).status_code in {status, 405}
    assert lake.list("bundles") == []


def test_newer_columns_are_named_to_the_node_and_counted(start: Started) -> None:
    batch = made_batch(dreams={"time": []})
    client = start()
    assert push(client, encode(batch)).json()["ignored"] == ["dreams"]
    assert "necroscope_collector_ignored_total 1\n" in client.get("/metrics").text


def test_health_and_metrics_need_no_token(start: Started) -> None:
    client = start()
    assert client.get("/healthz").status_code == 200
    push(client, encode(made_batch()))
    text = client.get("/metrics").text
    assert "necroscope_collector_batches_total 1\n" in text
    assert 'necroscope_collector_requests_total{status="200"} 2\n' in text
    assert "gpu-17" not in text


def test_questions_are_answered_to_readers_of_their_cluster(start: Started) -> None:
    router = APIRouter()

    @router.get("/v1/question")
    async def question(grant: Reader, collector: CollectorOf) -> dict[str, Any]:
        return {"clusters": grant.clusters, "lake": collector.lake.url}

    client = start(routers=[router])
    asked = {
        token: client.get("/v1/question", headers={"Authorization": f"Bearer {token}"})
        for token in ("read", "read-all", "push", "x")
    }
    assert asked["read"].json()["clusters"] == ["eu-1"]
    assert asked["read-all"].json()["clusters"] is None
    assert (asked["push"].status_code, asked["x"].status_code) == (403, 401)


def test_the_page_is_served_beside_the_routes(start: Started, tmp_path: Path) -> None:
    page = tmp_path / "static"
    page.mkdir()
    client = start(page=page)
    assert client.get("/").status_code == 503
    (page / "fleet.html").write_text("<title>fleet</title>", "utf-8")
    (page / "fleet.js").write_text("1", "utf-8")
    assert "fleet" in client.get("/").text
    assert client.get("/fleet.js").text == "1"
    assert client.get("/healthz").json()["status"] == "ok"
    assert "default-src 'none'" in client.get("/").headers["content-security-policy"]


def test_a_node_of_another_century_is_refused_and_one_of_yesterday_is_not(
    start: Started, lake: Lake
) -> None:
    client = start()
    late = replace(made_batch(), sent_ns=4_000_000_000 * 10**9)
    assert push(client, encode(late)).status_code == 400
    assert (
        push(client, encode(made_batch()), **{SENT_HEADER: str(4_000_000_000 * 10**9)}).status_code
        == 400
    )
    assert (
        push(client, encode(replace(late, sent_ns=time.time_ns() + 86_400 * 10**9))).status_code
        == 200
    )


def test_slow_bodies_hold_what_has_come_of_them_and_one_node_holds_few(start: Started) -> None:
    client = start(limits=Limits(queued_bytes=1000, node_requests=2))
    authority = f"{client.base_url.host}:{client.base_url.port}"
    with contextlib.ExitStack() as stack:
        for token in ("push", "push", "push", "push-17", "push-17"):
            slow = stack.enter_context(
                socket.create_connection((client.base_url.host, client.base_url.port))
            )
            head = (
                f"POST /v1/batches HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer"
                f" {token}\r\nContent-Length: 900\r\n\r\n"
            )
            slow.sendall(head.encode() + b"x")
        while "queue_requests 5\n" not in client.get("/metrics").text:
            pass
        assert push(client, encode(made_batch("gpu-17")), "push-17").status_code == 429
        assert push(client, encode(made_batch("gpu-17"))).status_code == 200


def test_slow_questions_do_not_hold_up_pushes_and_health(start: Started) -> None:
    router, is_over, inside = APIRouter(), threading.Event(), threading.Semaphore(0)

    @router.get("/v1/slow")
    def slow(grant: Reader, collector: CollectorOf) -> dict[str, Any]:
        inside.release()
        is_over.wait(60)
        return {}

    client = start(routers=[router])
    url, headers = str(client.base_url.join("/v1/slow")), {"Authorization": "Bearer read"}
    with ThreadPoolExecutor(45) as readers:
        asked = [readers.submit(httpx.get, url, headers=headers, timeout=60) for _ in range(45)]
        try:
            assert all(inside.acquire(timeout=20) for _ in range(40)), "the pool is full"
            assert client.get("/healthz", timeout=10).status_code == 200
            assert push(client, encode(made_batch())).status_code == 200
        finally:
            is_over.set()
        assert {each.result().status_code for each in asked} == {200}
