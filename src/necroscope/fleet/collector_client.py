"""Asks a collector: GET with a token, over TLS if the URL says so; an answer that is no becomes an
error of ours.
"""

import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from necroscope.errors import NecroscopeError, PermissionMissing, UsageError
from necroscope.model.names import LINE_LIMIT, clean

_TIMEOUT_S: Final = 120.0
_LARGEST_BYTES: Final = 512 << 20


@dataclass(frozen=True, slots=True)
class CollectorClient:
    url: str
    token: str
    ca_file: Path | None = None

    def ask(self, name: str, words: dict[str, str]) -> dict[str, Any]:
        """The JSON of `/v1/NAME?words`."""
        place = urlsplit(self.url)
        try:
            port = place.port
        except ValueError:
            port = -1
        if place.scheme not in ("http", "https") or not place.hostname or port == -1:
            raise UsageError(
                f"{self.url!r} is no URL of a collector", "write it as https://collector:7443"
            )
        path = f"{place.path.rstrip('/')}/v1/{quote(name)}?{urlencode(words)}"
        try:
            connection = self._connection(place.scheme, place.hostname, port)
            try:
                connection.request(
                    "GET",
                    path,
                    headers={"Authorization": f"Bearer {self.token}", "Accept": "application/json"},
                )
                response = connection.getresponse()
                body = response.read(_LARGEST_BYTES)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            hint = "is it running (necroscope fleet serve), and is --ca-file right?"
            raise NecroscopeError(
                f"cannot ask {self.url}: {clean(str(error) or repr(error))}", hint
            ) from None
        return self._checked(response.status, body)

    def _connection(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        if scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
        context = ssl.create_default_context(
            cafile=None if self.ca_file is None else str(self.ca_file)
        )
        return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=context)

    def _checked(self, status: int, body: bytes) -> dict[str, Any]:
        try:
            told = json.loads(body)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise NecroscopeError(
                f"{self.url} answers with status {status} and no JSON",
                "is this the collector's URL?",
            )
        if status == 200:
            return told
        facts, hint = (
            clean(str(told.get("error", f"status {status}")), LINE_LIMIT),
            clean(str(told.get("hint", "")), LINE_LIMIT),
        )
        if status in (401, 403):
            raise PermissionMissing(facts, hint)
        raise (UsageError if status in (400, 422) else NecroscopeError)(facts, hint)
