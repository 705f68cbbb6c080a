"""Signing in to the fleet's page: a reader's token becomes a cookie, and a cookie may only ask."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.fleet_batches import made_batch
from tests.served_collector import served

from necroscope.fleet.collector.app import create_app
from necroscope.fleet.collector.session_routes import COOKIE, SESSION_PATH, SessionCookie, router
from necroscope.fleet.lake import Lake
from necroscope.fleet.protocol import encode
from necroscope.fleet.tokens import Grant, Tokens, digest_of

GRANTS = {
    "push": Grant("eu-1", "push"),
    "read": Grant("eu-1", "read"),
    "read-all": Grant("*", "read"),
}
TOKENS = Tokens({digest_of(token): grant for token, grant in GRANTS.items()})


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    app = create_app(
        Lake.open(str(tmp_path / "lake")), TOKENS, routers=[router], commit_every_s=0.001
    )
    app.add_middleware(SessionCookie)
    with served(app) as client:
        yield client


def signed_in(client: httpx.Client, token: str) -> httpx.Response:
    return client.post(SESSION_PATH, headers={"Authorization": f"Bearer {token}"})


def test_a_reader_s_token_becomes_a_cookie_that_no_script_reads_and_no_other_site_sends(
    client: httpx.Client,
) -> None:
    answer = signed_in(client, "read")
    assert answer.json() == {"cluster": "eu-1"}
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=read;")
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert client.get(SESSION_PATH).json() == {"cluster": "eu-1"}


def test_over_tls_the_cookie_never_travels_in_the_clear(tmp_path: Path) -> None:
    app = create_app(Lake.open(str(tmp_path / "lake")), TOKENS, routers=[router])

    async def ask() -> str:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="https://collector"
        ) as client:
            answer = await client.post(SESSION_PATH, headers={"Authorization": "Bearer read"})
        return answer.headers["set-cookie"]

    assert "Secure" in asyncio.run(ask())


def test_who_is_not_signed_in_is_reported_so(client: httpx.Client) -> None:
    assert client.get(SESSION_PATH).status_code == 401
    assert signed_in(client, "wrong").status_code == 401
    assert signed_in(client, "push").status_code == 403
    assert not client.cookies


def test_signed_out_is_out(client: httpx.Client) -> None:
    signed_in(client, "read-all")
    assert client.get(SESSION_PATH).json() == {"cluster": "*"}
    client.delete(SESSION_PATH)
    assert client.get(SESSION_PATH).status_code == 401


def test_a_token_in_the_header_counts_more_than_the_cookie(client: httpx.Client) -> None:
    signed_in(client, "read")
    assert client.get(SESSION_PATH, headers={"Authorization": "Bearer read-all"}).json() == {
        "cluster": "*"
    }
    assert client.get(SESSION_PATH, headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_a_cookie_pushes_nothing(client: httpx.Client) -> None:
    client.cookies.set(COOKIE, "push")
    assert client.post("/v1/batches", content=encode(made_batch())).status_code == 401


@pytest.mark.parametrize(
    "cookie",
    ['necroscope_fleet="', "necroscope_fleet=\xff", "a=b; =; necroscope_fleet", "x" * 4000],
)
def test_garbage_in_cookies_is_nobody(client: httpx.Client, cookie: str) -> None:
    assert client.get(SESSION_PATH, headers={"Cookie": cookie.encode("latin-1")}).status_code == 401  # type: ignore[dict-item]
