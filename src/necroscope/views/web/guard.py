"""Who may ask: only who has the token, only under our own name, never another site's page.

A page that a browser shows from elsewhere can send requests to loopback, and by rebinding its DNS
name even as its own origin. So the Host must be ours, an Origin must be ours, and every answer
needs the token: in the cookie that the opened link set, or as a bearer token.
"""

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
    " blob:; connect-src 'self'; font-src 'self'; frame-src 'self'; frame-ancestors 'self';"
    " base-uri 'none'; form-action 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)

_GO_ON: Final = (
    b'<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>necroscope</title>'
)


class Guard:
    """`hosts` are the names under which the server may be asked, without a port. `once` lets in
    once: it stands in a file that the browser is opened with.
    """

    def __init__(
        self,
        application: Application,
        token: str,
        hosts: frozenset[str],
        once: str | None = None,
        printed_by: str = "necroscope view",
    ) -> None:
        self._application = application
        self._way_out = f"use the whole address and token that `{printed_by}` printed"
        self._token = token
        self._hosts = hosts
        self._once = once

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(send, *refusal)
        elif (given := _word(scope, "once")) is not None:
            await self._admit_once(given, headers.get(b"host", ""), send)
        elif (given := _word(scope, "token")) is not None:
            await self._admit(scope, given, headers.get(b"host", ""), send)
        else:
            await self._application(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[bytes, str]) -> tuple[int, str, str] | None:
        host = headers.get(b"host", "")
        if _name(host) not in self._hosts and _name(host) != _own_address(scope):
            return (
                421,
                f"this server is not {_name(host)[:80]!r}",
                self._way_out,
            )
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return 403, "another site asked", "open the page itself"
        is_new = any(_word(scope, name) is not None for name in ("token", "once"))
        if not is_new and not self._is_known(headers):
            return (
                401,
                "the token is missing",
                self._way_out,
            )
        return None

    def _is_known(self, headers: dict[bytes, str]) -> bool:
        bearer = headers.get(b"authorization", "").removeprefix("Bearer ")
        try:
            name = cookie_name(headers.get(b"host", ""))
            cookie = SimpleCookie(headers.get(b"cookie", "")).get(name)
        except CookieError:
            cookie = None
        return self._matches(bearer) or (cookie is not None and self._matches(cookie.value))

    async def _admit_once(self, given: str, host: str, send: Send) -> None:
        """A page that goes on to the real one: the cookie is for navigation from our own pages
        alone, and a redirect would still count as coming from the file.
        """
        if self._once is None or not hmac.compare_digest(given.encode(), self._once.encode()):
            hint = self._way_out
            await _answer(send, 401, "this link was used before, or is wrong", hint)
            return
        self._once = None
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"set-cookie", self._cookie(host)),
            *_HEADERS,
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": _GO_ON})

    def _cookie(self, host: str) -> bytes:
        return f"{cookie_name(host)}={self._token}; Path=/; HttpOnly; SameSite=Strict".encode()

    async def _admit(self, scope: Scope, given: str, host: str, send: Send) -> None:
        """The link's token becomes a cookie, and leaves the address bar: links are shared."""
        if not self._matches(given):
            await _answer(
                send,
                401,
                "the token is wrong",
                self._way_out,
            )
            return
        rest = {
            name: values
            for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()
            if name != "token"
        }
        # A path of two slashes would be another host.
        target = (
            "/" + scope["path"].lstrip("/") + (f"?{urlencode(rest, doseq=True)}" if rest else "")
        )
        await send(
            {
                "type": "http.response.start",
                "status": 303,
                "headers": [
                    (b"location", target.encode("latin-1", "replace")),
                    (b"set-cookie", self._cookie(host)),
                    *_HEADERS,
                ],
            }
        )
        await send({"type": "http.response.body", "body": b""})

    def _matches(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())


def _word(scope: Scope, name: str) -> str | None:
    values = parse_qs(scope["query_string"].decode("latin-1")).get(name)
    return values[0] if values else None


def cookie_name(host: str) -> str:
    """With the port that the browser sees: it keeps the cookies of a host's servers together."""
    _, colon, port = host.rpartition(":")
    return f"necroscope_token_{port if colon and port.isdecimal() else 80}"


def _name(host: str) -> str:
    """A host without its port; an IPv6 address keeps its brackets."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()


def _own_address(scope: Scope) -> str | None:
    """Where the connection came in, as a host is written; no name can be rebound to it."""
    server = scope.get("server") or ("",)
    try:
        address = ipaddress.ip_address(str(server[0]).partition("%")[0])
    except ValueError:
        return None
    return f"[{address}]" if address.version == 6 else str(address)


async def _answer(send: Send, status: int, facts: str, hint: str) -> None:
    body = f"error: {facts}\nhint: {hint}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            have = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *(pair for pair in _HEADERS if pair[0] not in have),
            ]
        await send(message)

    return send_with_headers
