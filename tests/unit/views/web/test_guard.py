"""Who may ask the server: only who has the token, under our own name, from our own page."""

import httpx
import pytest

from necroscope.views.web.guard import Guard, cookie_name

TOKEN = "a-secret"
COOKIE = cookie_name("localhost:8080")


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
def test_without_the_token_nothing_is_reported(path: str) -> None:
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


def test_a_link_of_one_use_lets_in_once() -> None:
    guard = Guard(answers_all, TOKEN, frozenset({"localhost"}), "once-only")

    async def run() -> list[httpx.Response]:
        transport = httpx.ASGITransport(guard)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8080") as one:
            first = await one.get("/?once=once-only")
            return [
                await one.get("/?once=other"),
                first,
                await one.get("/?once=once-only"),
                await one.get("/"),
            ]

    import asyncio

    other, first, again, page = asyncio.run(run())
    assert (other.status_code, first.status_code, again.status_code) == (401, 200, 401)
    assert "SameSite=Strict" in first.headers["set-cookie"]
    assert "url=/" in first.text
    assert page.text == "data"


def test_two_servers_of_one_host_have_cookies_of_their_own() -> None:
    assert ask("/", base="http://localhost:9090", cookie=f"{COOKIE}={TOKEN}").status_code == 401
    assert cookie_name("localhost") == "necroscope_token_80"
