"""The node's condition `CoreStarved` and an Event for each incident, through the Kubernetes API.

PATCH /api/v1/nodes/NAME/status (strategic merge: conditions are merged by their type, others stay)
and POST /api/v1/namespaces/default/events, with the token and the certificate of the pod's service
account. That is all it may do: `nodes/status` patch and, in the namespace `default`, where events
of nodes live, `events` create.
"""

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from necroscope.analysis.report import Incident
from necroscope.errors import UsageError
from necroscope.fleet.request import DeliveryError, Endpoint, HttpAnswer
from necroscope.model.names import clean
from necroscope.model.units import NS_PER_S, format_moment
from necroscope.outlets.notify.outbox import Letter

CONDITION: Final = "CoreStarved"
CREDENTIALS: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_COMPONENT: Final = "necroscope"
_NAMESPACE: Final = "default"
# An Event's text has 1,024 bytes at most in events.k8s.io/v1, which tells the same objects;
# conditions are bounded likewise.
_TEXT_BYTES: Final = 950
# An RFC 1123 name: it becomes a part of paths.
_NODE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Condition:
    """Whether a core was starved just now, why, and since when this is so."""

    is_true: bool
    reason: str
    message: str
    since_ns: int

    def as_json(self, now_ns: int) -> dict[str, Any]:
        return {
            "type": CONDITION,
            "status": "True" if self.is_true else "False",
            "reason": self.reason,
            "message": self.message,
            "lastHeartbeatTime": _moment(now_ns),
            "lastTransitionTime": _moment(self.since_ns),
        }


class Kubernetes:
    """The API server as one node sees it. The token is read at every request: the kubelet replaces
    it each hour.
    """

    name = "kubernetes"
    hears_ends = False

    def __init__(self, endpoint: Endpoint, token_file: Path, node: str) -> None:
        if not _NODE_NAME.fullmatch(node):
            raise UsageError(
                f"{clean(node)!r} is not a valid name of a Kubernetes node",
                "set NODE_NAME by the downward API: spec.nodeName",
            )
        self._endpoint = endpoint
        self._token_file = token_file
        self.node = node

    @classmethod
    def in_pod(
        cls, node: str, url: str | None = None, credentials: Path = CREDENTIALS
    ) -> "Kubernetes":
        """From what the kubelet gives every pod, or from a directory that holds the same files."""
        if url is None:
            host, port = (
                os.environ.get("KUBERNETES_SERVICE_HOST"),
                os.environ.get("KUBERNETES_SERVICE_PORT", "443"),
            )
            if not host:
                raise UsageError(
                    "this is not a pod: KUBERNETES_SERVICE_HOST is not set",
                    "name the API server: --kubernetes-api URL",
                )
            url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        ca_file = credentials / "ca.crt"
        return cls(
            Endpoint.parse(url, ca_file if url.startswith("https") else None),
            credentials / "token",
            node,
        )

    def deliver(self, letter: Letter, now_ns: int) -> None:
        """An Event. Its name is made of the incident and the answer, so that a second try of one
        that arrived is refused as known: delivered.
        """
        event = event_as_json(letter, self.node, now_ns)
        answer = self._send(
            "POST", f"/api/v1/namespaces/{_NAMESPACE}/events", "application/json", event
        )
        answer.must_be("Kubernetes event", 200, 201, 202, 409)

    def set_condition(self, condition: Condition, now_ns: int) -> None:
        """DeliveryError if the API server did not take it."""
        patch = {"status": {"conditions": [condition.as_json(now_ns)]}}
        path = f"/api/v1/nodes/{self.node}/status"
        self._send("PATCH", path, "application/strategic-merge-patch+json", patch).must_be(
            "Kubernetes node condition", 200
        )

    def _send(
        self, method: str, path: str, content_type: str, content: dict[str, Any]
    ) -> HttpAnswer:
        try:
            token = self._token_file.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise DeliveryError(f"cannot read the token in {self._token_file}: {error}") from None
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": content_type,
            "Accept": "application/json",
        }
        return self._endpoint.send(method, headers, json.dumps(content).encode(), path)


def event_as_json(letter: Letter, node: str, now_ns: int) -> dict[str, Any]:
    """`kubectl describe node` finds the events whose object has the node's name as uid, as the
    kubelet's own have.
    """
    incident = letter.entry.incident
    before = (
        f" ({letter.left_out} incidents before it were not reported)" if letter.left_out else ""
    )
    key = f"{node}\n{incident.id}\n{incident.verdict.answer}"
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{node[:200].rstrip('.-')}.{digest}", "namespace": _NAMESPACE},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
        "type": "Warning",
        "reason": reason_of(incident),
        "message": text_of(incident) + before,
        "firstTimestamp": _moment(incident.from_ns),
        "lastTimestamp": _moment(now_ns),
        "count": 1,
        "source": {"component": _COMPONENT, "host": node},
        "reportingComponent": _COMPONENT,
        "reportingInstance": node,
    }


def reason_of(incident: Incident) -> str:
    """`zombie-memcg-walk` as Kubernetes writes reasons: ZombieMemcgWalk."""
    words = re.findall(r"[a-z0-9]+", incident.verdict.cause)
    return "".join(word.capitalize() for word in words)[:100] or "Unknown"


def text_of(incident: Incident) -> str:
    place = "" if incident.core is None else f"core {incident.core}: "
    origin = incident.verdict.origin
    act = f" Act on {origin.kind} {origin.name}." if origin else ""
    message = f"{place}{incident.verdict.title}. {incident.verdict.summary}{act}"
    text = clean(message, _TEXT_BYTES)
    return text.encode()[:_TEXT_BYTES].decode("utf-8", "ignore")


def _moment(time_ns: int) -> str:
    """RFC 3339 to the second, as metav1.Time is."""
    return format_moment(time_ns // NS_PER_S * NS_PER_S).replace(".000Z", "Z")
