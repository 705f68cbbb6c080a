"""Incidents as signed JSON: POST to one address, which answers 2xx when it has taken it.

Headers: `X-Necroscope-Delivery` is the same at every try of one incident, so that a receiver whose
answer was lost can tell; `X-Necroscope-Timestamp` is now in seconds; `X-Necroscope-Signature` is
`sha256=` and the HMAC-SHA256, in hexadecimal, with the shared secret, of the timestamp, a full stop
and the body. A receiver checks it in constant time and refuses old timestamps.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from necroscope import __version__
from necroscope.errors import UsageError
from necroscope.fleet.request import DeliveryError, Endpoint
from necroscope.model.names import clean
from necroscope.model.units import NS_PER_S
from necroscope.outlets.notify.outbox import Letter

_SUCCESS: Final = range(200, 300)


class Webhook:
    """One receiver. The secret is read at every try: it may be replaced while this runs."""

    name = "webhook"
    hears_ends = True

    def __init__(
        self, endpoint: Endpoint, secret_file: Path | None, node: str, labels: Mapping[str, str]
    ) -> None:
        self._endpoint = endpoint
        self._secret_file = secret_file
        self._node = node
        self._labels = dict(labels)

    def deliver(self, letter: Letter, now_ns: int) -> None:
        """DeliveryError unless the receiver says that it has it."""
        delivery = delivery_id(letter, self._node)
        body = message(letter, self._node, self._labels)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"necroscope/{__version__}",
            "X-Necroscope-Delivery": delivery,
            "X-Necroscope-Timestamp": str(now_ns // NS_PER_S),
        }
        if self._secret_file is not None:
            headers["X-Necroscope-Signature"] = signature(
                self._secret(), headers["X-Necroscope-Timestamp"], body
            )
        self._endpoint.send("POST", headers, body).must_be(
            f"webhook {clean(self._endpoint.host)}", *_SUCCESS
        )

    def _secret(self) -> bytes:
        assert self._secret_file is not None
        try:
            return read_secret(self._secret_file)
        except UsageError as error:
            raise DeliveryError(error.facts) from None


def read_secret(path: Path) -> bytes:
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise UsageError(f"cannot read the secret in {path}: {error.strerror}") from None
    if not secret:
        raise UsageError(f"{path} holds no secret", "write one with: openssl rand -hex 32")
    return secret


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    return (
        "sha256=" + hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    )


def delivery_id(letter: Letter, node: str) -> str:
    """Of the node, the incident, its state and the answer, nothing else."""
    entry = letter.entry
    key = f"{node}\n{entry.id}\n{entry.state}\n{entry.incident.verdict.answer}"
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def message(letter: Letter, node: str, labels: dict[str, str]) -> bytes:
    """The body."""
    incident = letter.entry.incident
    report = incident.as_json()
    content = {
        "type": "incident",
        "state": letter.entry.state,
        "delivery": delivery_id(letter, node),
        "node": node,
        "labels": labels,
        "left_out_before": letter.left_out,
        "incident": report | {"verdict": report["verdict"] | {"title": incident.verdict.title}},
    }
    return json.dumps(content).encode()
