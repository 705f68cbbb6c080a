"""Sends entries of the spool to the collector: one connection that is kept, a time-out on
everything, and the answer understood.

Who answers and what it means: 200 the entry is durable there; 400, 413, 415, 422 it will never be
taken; 401, 403, 404, 405 and redirects are a wrong token or address, which is not a fault of the
entry and ends when that is mended; all else is a bad moment.
"""

import http.client
import json
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

from necroscope.errors import NecroscopeError
from necroscope.fleet.protocol import (
    BATCHES_PATH,
    BUNDLES_PATH,
    CLOCK_HEADER,
    NODE_HEADER,
    SENT_HEADER,
    TIME_HEADER,
)
from necroscope.fleet.request import Connection, Endpoint, retry_after_s
from necroscope.model.names import clean

# Of one read or write, and of a whole request however slowly it drips.
_TIMEOUT_S: Final = 20.0
_DEADLINE_S: Final = 60.0
_ANSWER_BYTES: Final = 1 << 16
_NEVER: Final = frozenset({400, 409, 413, 415, 422})
_DENIED: Final = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405})
_STALE: Final = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class PushOutcome(Enum):
    TAKEN = "taken"
    REFUSED = "refused"
    DENIED = "denied"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class PushAnswer:
    """`text` says why it was not taken; `wait_s` is how long the collector asks to be left alone;
    `told` is what it said to what it took.
    """

    outcome: PushOutcome
    text: str = ""
    wait_s: float | None = None
    body: dict[str, Any] = field(default_factory=dict)


class Sender:
    """`timeout_s` and `deadline_s` are for tests. Close it when done."""

    def __init__(
        self,
        url: str,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        timeout_s: float = _TIMEOUT_S,
        deadline_s: float = _DEADLINE_S,
    ) -> None:
        self._endpoint = Endpoint.parse(url, ca_file)
        self._prefix = self._endpoint.path.partition("?")[0].rstrip("/")
        self._token_file = token_file
        self._timeout_s = timeout_s
        self._deadline_s = deadline_s
        self._connection: Connection | None = None

    @property
    def is_open_to_all(self) -> bool:
        """Whether the token would travel in the clear, beyond this machine."""
        is_here = self._endpoint.host in ("localhost", "::1") or self._endpoint.host.startswith(
            "127."
        )
        return self._endpoint.context is None and self._token_file is not None and not is_here

    def send_batch(self, body: bytes, now_ns: int, clock: str | None = None) -> PushAnswer:
        """`clock` is what `CollectorClock.header` says."""
        headers = {
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            SENT_HEADER: str(now_ns),
        }
        if clock is not None:
            headers[CLOCK_HEADER] = clock
        return self._send("POST", BATCHES_PATH, headers, body)

    def send_bundle(self, name: str, node: str, time_ns: int, body: bytes) -> PushAnswer:
        headers = {
            "Content-Type": "application/octet-stream",
            NODE_HEADER: node,
            TIME_HEADER: str(time_ns),
        }
        return self._send("PUT", BUNDLES_PATH + name, headers, body)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> PushAnswer:
        """A connection that was kept may have been closed meanwhile, without notice: then once
        more on a new one.
        """
        try:
            headers = headers | self._authorization()
            is_kept = self._connection is not None
            try:
                return self._request(method, self._prefix + path, headers, body)
            except _STALE:
                self.close()
                if not is_kept:
                    raise
                return self._request(method, self._prefix + path, headers, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            host = clean(self._endpoint.host)
            return PushAnswer(
                PushOutcome.LATER, f"{host}: {clean(str(error) or type(error).__name__)}"
            )
        except NecroscopeError as error:
            return PushAnswer(PushOutcome.DENIED, error.facts)

    def _authorization(self) -> dict[str, str]:
        """Read each time: a token that is changed in its file is used from then on."""
        if self._token_file is None:
            return {}
        try:
            token = self._token_file.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NecroscopeError(f"cannot read the token in {self._token_file}: {error}") from None
        return {"Authorization": f"Bearer {token}"}

    def _request(self, method: str, path: str, headers: dict[str, str], body: bytes) -> PushAnswer:
        connection = self._connection = self._connection or self._endpoint.connection(
            self._timeout_s
        )
        with connection.ended_after(self._deadline_s):
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            said = response.read(_ANSWER_BYTES)
            if response.will_close or response.read(1):
                self.close()
            return _answer_of(response.status, said, response.getheader("Retry-After"))


def _answer_of(status: int, said: bytes, retry_after: str | None) -> PushAnswer:
    if 200 <= status < 300:
        return PushAnswer(PushOutcome.TAKEN, body=_read_body(said))
    text = f"the collector answered {status}: {_words_of(said)}"
    if status in _NEVER:
        return PushAnswer(PushOutcome.REFUSED, text)
    if status in _DENIED:
        return PushAnswer(PushOutcome.DENIED, text)
    return PushAnswer(PushOutcome.LATER, text, retry_after_s(retry_after))


def _read_body(said: bytes) -> dict[str, Any]:
    """Another server's answer, or an older collector's, tells nothing."""
    try:
        content = json.loads(said)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _words_of(said: bytes) -> str:
    """The collector's own words, {"error", "hint"}; of any other server's the start."""
    try:
        content = json.loads(said)
        return clean(
            f"{content['error']} ({content['hint']})"
            if content.get("hint")
            else str(content["error"]),
            300,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return clean(said[:200]).strip()
