"""The part of a Kubernetes API server that notices go to, as strict as the real one about it:
tokens, rights, patches, events.

Rules from the API server's source: authentication by bearer token (401), RBAC (403), strategic
merge of `conditions` by `type` (core/v1 types.go: patchMergeKey), and of Events legacyValidateEvent
(pkg/apis/core/validation/events.go).
"""

import json
import re
from typing import Any

from tests.receiving_server import Received, Reply

TOKEN = "eyJhbGciOiJSUzI1NiJ9.test.token"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_CONDITION_FIELDS = {
    "type",
    "status",
    "reason",
    "message",
    "lastHeartbeatTime",
    "lastTransitionTime",
}


class KubernetesApi:
    """One cluster: nodes with their conditions, and events. Use it as `reply` of a
    ReceivingServer.
    """

    def __init__(self, *nodes: str) -> None:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
        self.conditions: dict[str, list[dict[str, Any]]] = {node: [ready] for node in nodes}
        self.events: dict[str, dict[str, Any]] = {}
        self.token = TOKEN

    def __call__(self, request: Received) -> Reply:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return self._status(401, "Unauthorized")
        if request.method == "PATCH" and (
            match := re.fullmatch(r"/api/v1/nodes/([^/]+)/status", request.path)
        ):
            return self._patch(match[1], request)
        if request.method == "POST" and request.path == "/api/v1/namespaces/default/events":
            return self._create(request)
        return self._status(403, f"{request.method} {request.path} is forbidden")

    def condition(self, node: str, kind: str = "CoreStarved") -> dict[str, Any]:
        return next(one for one in self.conditions[node] if one["type"] == kind)

    def _patch(self, node: str, request: Received) -> Reply:
        if request.headers["Content-Type"] != "application/strategic-merge-patch+json":
            return self._status(415, "the body of the request was in an unknown format")
        if node not in self.conditions:
            return self._status(404, f'nodes "{node}" not found')
        patch = request.content
        if set(patch) != {"status"} or set(patch["status"]) != {"conditions"}:
            return self._status(422, "more was patched than conditions")
        for new in patch["status"]["conditions"]:
            if not _is_condition(new):
                return self._status(422, f"invalid condition {new}")
            old = next((one for one in self.conditions[node] if one["type"] == new["type"]), {})
            others = [one for one in self.conditions[node] if one["type"] != new["type"]]
            self.conditions[node] = [*others, old | new]
        return (
            200,
            {"Content-Type": "application/json"},
            json.dumps({"kind": "Node", "metadata": {"name": node}}).encode(),
        )

    def _create(self, request: Received) -> Reply:
        event = request.content
        name, about = event["metadata"]["name"], event["involvedObject"]
        if (
            request.headers["Content-Type"] != "application/json"
            or event["apiVersion"] != "v1"
            or event["kind"] != "Event"
        ):
            return self._status(400, "no v1 Event")
        if not _NAME.fullmatch(name) or len(name) > 253:
            return self._status(422, f"metadata.name: Invalid value: {name!r}")
        # An object without a namespace has its events in `default`.
        if event["metadata"]["namespace"] != "default" or about.get("namespace"):
            return self._status(422, "involvedObject.namespace: does not match event.namespace")
        if (
            event["type"] not in ("Normal", "Warning")
            or not event["reason"].isalnum()
            or len(event["message"].encode()) > 1024
        ):
            return self._status(422, "invalid type, reason or message")
        if not _TIME.fullmatch(event["firstTimestamp"]) or not _TIME.fullmatch(
            event["lastTimestamp"]
        ):
            return self._status(400, "cannot parse a timestamp")
        if name in self.events:
            return self._status(409, f'events "{name}" already exists')
        self.events[name] = event
        return 201, {"Content-Type": "application/json"}, json.dumps(event).encode()

    @staticmethod
    def _status(code: int, message: str) -> Reply:
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": message,
            "code": code,
        }
        return code, {"Content-Type": "application/json"}, json.dumps(body).encode()


def _is_condition(new: dict[str, Any]) -> bool:
    times = [new[name] for name in ("lastHeartbeatTime", "lastTransitionTime")]
    return (
        set(new) == _CONDITION_FIELDS
        and new["status"] in ("True", "False")
        and all(map(_TIME.fullmatch, times))
    )
