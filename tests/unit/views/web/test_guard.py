"""Who may ask the server: only who has the token, under our own name, from our own page."""

import httpx
import pytest

from necroscope.views.web.guard import COOKIE, Guard

TOKEN = "a-secret"


async def answers_all(scope, receive, send) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/plain")],
        }
    )
    await send({"type": "http.response.body", "body": b"data"})


def ask(path: str, base: str = "http://localhost:8080", **headers: str) -> httpx.Response:
    guard = Guard(answers_all, TOKEN, frozenset({"localhost", "127.0.0.1", "[::1]"}))

    async def run() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url=base) as client:
            return await client.get(
                path, headers={name.replace("_", "-"): value for name, value in headers.items()}
            )

    import asyncio

    return asyncio.run(run())


@pytest.mark.parametrize(
    "path", ["/", "/api/recording", "/openapi.json", "/assets/x.js", "/api/../api/recording"]
)
def test_without_the_token_nothing_is_told(path: str) -> None:
    answer = ask(path)
    assert answer.status_code == 401
    assert "data" not in answer.text
    assert "hint:" in answer.text


def test_a_wrong_token_is_refused() -> None:
    assert ask("/?token=a-secres").status_code == 401
    assert ask("/", cookie=f"{COOKIE}=other").status_code == 401
    assert ask("/", authorization="Bearer other").status_code == 401


def test_the_link_sets_a_cookie_and_hides_the_token() -> None:
    answer = ask(f"/?token={TOKEN}&at=7")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/?at=7"
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=Strict" in answer.headers["set-cookie"]


def test_the_link_leads_to_no_other_host() -> None:
    assert (
        ask(f"http://localhost:8080//evil.example/?token={TOKEN}")
        .headers["location"]
        .startswith("/evil.example")
    )


def test_cookie_and_bearer_token_are_let_in() -> None:
    assert ask("/api/recording", cookie=f"{COOKIE}={TOKEN}").text == "data"
    assert ask("/api/recording", authorization=f"Bearer {TOKEN}").text == "data"


def test_another_name_for_us_is_refused_even_with_the_token() -> None:
    answer = ask("/api/recording", base="http://rebound.example:8080", cookie=f"{COOKIE}={TOKEN}")
    assert answer.status_code == 421


def test_another_site_gets_nothing_even_with_the_cookie() -> None:
    answer = ask("/api/recording", cookie=f"{COOKIE}={TOKEN}", origin="http://evil.example")
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    assert (
        ask(
            "/api/recording", cookie=f"{COOKIE}={TOKEN}", origin="http://localhost:8080"
        ).status_code
        == 200
    )
    assert (
        ask(
            "/api/recording", cookie=f"{COOKIE}={TOKEN}", origin="http://localhost:9999"
        ).status_code
        == 403
    )


def test_every_answer_forbids_scripts_from_elsewhere() -> None:
    for answer in (ask("/"), ask("/", cookie=f"{COOKIE}={TOKEN}")):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_broken_cookie_is_no_crash() -> None:
    assert ask("/", cookie='"; =;;,').status_code == 401


def test_the_address_at_which_a_connection_came_in_is_ours() -> None:
    # The transport tells the server's address as that of the question, as a listener on all
    # addresses does.
    assert ask("/", base="http://10.0.0.7:8080", cookie=f"{COOKIE}={TOKEN}").status_code == 200
    assert ask("/", base="http://[fe80::7]:8080", cookie=f"{COOKIE}={TOKEN}").status_code == 200
    assert (
        ask(
            "/", base="http://10.0.0.7:8080", cookie=f"{COOKIE}={TOKEN}", host="10.0.0.8:8080"
        ).status_code
        == 421
    )
