"""How the fleet's page stays signed in: a reader's token becomes a cookie that no script can read
and no other site can send.

The token comes in the fragment of a link, which never leaves the browser by itself, or is typed;
the page hands it in once. The cookie holds the token and nothing else: a collector keeps no
sessions, so any of several can answer.
"""

from http.cookies import CookieError, SimpleCookie
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from necroscope.fleet.collector.access import Reader
from necroscope.views.web.guard import Application, Receive, Scope, Send

COOKIE: Final = "necroscope_fleet"
SESSION_PATH: Final = "/v1/session"
# A browser sends cookies with whatever a page makes it send: they may ask, and never change
# anything.
_ASKING: Final = frozenset({"GET", "HEAD"})
router: Final = APIRouter()


@router.get(SESSION_PATH)
async def session(grant: Reader) -> dict[str, Any]:
    """Who is signed in, and what they may read; `*` is every cluster."""
    return {"cluster": grant.cluster}


@router.post(SESSION_PATH)
async def sign_in(request: Request, response: Response, grant: Reader) -> dict[str, Any]:
    token = request.headers["authorization"].split(maxsplit=1)[1].strip()
    is_secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=is_secure, path="/")
    return {"cluster": grant.cluster}


@router.delete(SESSION_PATH)
async def sign_out(response: Response) -> dict[str, Any]:
    response.delete_cookie(COOKIE, path="/")
    return {}


class SessionCookie:
    """Middleware: where a browser asks without a bearer token, its cookie is that token."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(_with_bearer(scope) if scope["type"] == "http" else scope, receive, send)


def _with_bearer(scope: Scope) -> Scope:
    headers = scope["headers"]
    if scope["method"] not in _ASKING or any(
        name.lower() == b"authorization" for name, _ in headers
    ):
        return scope
    token = _cookie_of(b"; ".join(value for name, value in headers if name.lower() == b"cookie"))
    return (
        scope
        if token is None
        else {**scope, "headers": [*headers, (b"authorization", f"Bearer {token}".encode())]}
    )


def _cookie_of(text: bytes) -> str | None:
    try:
        found = SimpleCookie(text.decode("latin-1")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None or not found.value.isascii() else found.value
