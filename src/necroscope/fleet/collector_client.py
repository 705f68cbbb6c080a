"""Asks a collector: GET with a token, over TLS if the URL says so; a refusal becomes an error of
ours.
"""

import http.client
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from necroscope.errors import NecroscopeError, PermissionMissing, UsageError
from necroscope.fleet.request import Endpoint
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
        endpoint = Endpoint.parse(self.url, self.ca_file)
        path = f"{endpoint.path.rstrip('/')}/v1/{quote(name)}?{urlencode(words)}"
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        connection = endpoint.connection(_TIMEOUT_S)
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
        return self._checked(response.status, body)

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
