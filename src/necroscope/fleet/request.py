"""Bounded HTTP requests: certificates are checked, redirects are not followed, and only the start
of an answer is read. And a collector as it is asked: a refusal becomes an error of ours.
"""

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from necroscope.errors import NecroscopeError, PermissionMissing, UsageError
from necroscope.model.names import LINE_LIMIT, clean

# Of one read or write, and of a whole request however slowly it drips.
_TIMEOUT_S: Final = 10.0
DEADLINE_S: Final = 30.0
_AGAIN_S: Final = 1.0
_ANSWER_BYTES: Final = 4096
_LONGEST_WAIT_S: Final = 3600.0
_ASK_TIMEOUT_S: Final = 120.0
_LARGEST_BYTES: Final = 512 << 20


class DeliveryError(NecroscopeError):
    """It did not arrive, or no answer said that it did; `wait_s` is how long the other side asks to
    be left alone.
    """

    def __init__(self, facts: str, wait_s: float | None = None) -> None:
        super().__init__(facts)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    body: bytes
    wait_s: float | None

    def must_be(self, what: str, *statuses: int) -> None:
        """DeliveryError if it is another; `what` was asked, without anything secret in it."""
        if self.status not in statuses:
            said = clean(self.body[:200]).strip()
            raise DeliveryError(
                f"{what}: answered {self.status}" + (f": {said}" if said else ""), self.wait_s
            )


class Connection(http.client.HTTPConnection):
    """Plain, or over TLS if there is a context."""

    def __init__(
        self, host: str, port: int | None, context: ssl.SSLContext | None, timeout_s: float
    ) -> None:
        self.default_port = http.client.HTTP_PORT if context is None else http.client.HTTPS_PORT
        super().__init__(host, port or self.default_port, timeout=timeout_s)
        self._tls = context
        self._line: socket.socket | None = None

    def connect(self) -> None:
        super().connect()
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self.host)
        # `sock` itself is let go of before the body of a last answer is read.
        self._line = self.sock

    @contextlib.contextmanager
    def ended_after(self, seconds: float) -> Iterator[None]:
        """TimeoutError then: a server that drips a byte now and then keeps every single read from
        timing out.
        """
        is_done, is_over = threading.Event(), threading.Event()

        def end() -> None:
            pause_s = seconds
            while not is_done.wait(pause_s):
                is_over.set()
                if self._line is not None:
                    # Not TLS's own, which would forget its state under the hands of the one who
                    # reads.
                    with contextlib.suppress(OSError):
                        socket.socket.shutdown(self._line, socket.SHUT_RDWR)
                pause_s = _AGAIN_S  # it may not have been connected yet

        threading.Thread(target=end, daemon=True).start()
        try:
            yield
        except (OSError, http.client.HTTPException, ValueError):
            if not is_over.is_set():
                raise
        finally:
            is_done.set()
        if is_over.is_set():
            raise TimeoutError(f"no whole answer within {seconds:g} s")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go; `context` is None for plain HTTP."""

    host: str
    port: int | None
    path: str
    context: ssl.SSLContext | None

    @classmethod
    def parse(cls, url: str, ca_file: Path | None = None) -> "Endpoint":
        """UsageError if this is not an address to send to. It may hold a secret, so no error
        repeats more than its host.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port, parts = None, None, urlsplit("")
        if (
            parts.scheme not in ("http", "https")
            or not host
            or parts.username is not None
            or not url.isascii()
            or " " in url
        ):
            raise UsageError(
                "the address to send to is not a URL",
                "write it as https://host[:port]/path, without user and password",
            )
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(host, port, path, _context(ca_file) if parts.scheme == "https" else None)

    def send(
        self, method: str, headers: dict[str, str], body: bytes = b"", path: str | None = None
    ) -> HttpAnswer:
        """The answer, whatever its status; DeliveryError if there was none."""
        connection = self.connection(_TIMEOUT_S)
        try:
            with connection.ended_after(DEADLINE_S):
                connection.request(
                    method, self.path if path is None else path, body or None, headers
                )
                response = connection.getresponse()
                return HttpAnswer(
                    response.status,
                    response.read1(_ANSWER_BYTES),
                    retry_after_s(response.getheader("Retry-After")),
                )
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise DeliveryError(
                f"{clean(self.host)}: {clean(str(error) or type(error).__name__)}"
            ) from None
        finally:
            connection.close()

    def connection(self, timeout_s: float) -> Connection:
        return Connection(self.host, self.port, self.context, timeout_s)


def _context(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"cannot use the certificates in {ca_file}: {error}", "name a file of PEM certificates"
        ) from None


def retry_after_s(text: str | None) -> float | None:
    """Retry-After in seconds; a date in its place is left to our own back-off."""
    return (
        min(float(text), _LONGEST_WAIT_S)
        if text and text.isascii() and text.isdecimal() and len(text) < 10
        else None
    )


@dataclass(frozen=True, slots=True)
class CollectorClient:
    url: str
    token: str
    ca_file: Path | None = None

    def ask(self, name: str, words: dict[str, str]) -> dict[str, Any]:
        """The JSON of `/v1/NAME?words`."""
        endpoint = Endpoint.parse(self.url, self.ca_file)
        path = f"{endpoint.path.rstrip('/')}/v1/{quote(name)}?{urlencode(words)}"
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        connection = endpoint.connection(_ASK_TIMEOUT_S)
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            body = response.read(_LARGEST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            hint = "is it running (necroscope fleet serve), and is --ca-file right?"
            facts = f"cannot ask {self.url}: {clean(str(error) or repr(error))}"
            raise NecroscopeError(facts, hint) from None
        finally:
            connection.close()
        return self._content_of(response.status, body)

    def _content_of(self, status: int, body: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise NecroscopeError(
                f"{self.url} answers with status {status} and no JSON",
                "is this the collector's URL?",
            )
        if status == 200:
            return answer
        facts, hint = (
            clean(str(answer.get("error", f"status {status}")), LINE_LIMIT),
            clean(str(answer.get("hint", "")), LINE_LIMIT),
        )
        if status in (401, 403):
            raise PermissionMissing(facts, hint)
        raise (UsageError if status in (400, 422) else NecroscopeError)(facts, hint)
