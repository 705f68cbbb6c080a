"""Ray's dashboard over REST, when one is configured: dead nodes, how jobs ended, and whether the
GCS is well.
"""

import json
import re
from typing import Any, Final

from necroscope.errors import SourceUnavailable, UsageError
from necroscope.model.names import clean
from necroscope.model.units import NS_PER_MS
from necroscope.sources.daemon_socket import DaemonSocket
from necroscope.sources.http_get import http_get
from necroscope.sources.ray.event_files import JOB_ENDS
from necroscope.sources.ray.ray_event import UNEXPECTED_FORM, RayEvent

TIMEOUT_S: Final = 10.0
_ANSWER_BYTES: Final = 16 << 20
_ADDRESS: Final = re.compile(
    r"(?:http://)?(?P<host>[0-9.]+|localhost|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})/?"
)
_NODES: Final = "/api/v0/nodes?detail=1&limit=10000"
_JOBS: Final = "/api/jobs/"
_HEALTH: Final = "/api/gcs_healthz"


def parse_address(text: str) -> tuple[str, int]:
    """`http://127.0.0.1:8265`; an address and no name, because a resolver has no deadline."""
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match["port"]) < 1 << 16:
        raise UsageError(
            f"{text!r} is not the address of a Ray dashboard", "write it as http://127.0.0.1:8265"
        )
    host = match["host"].strip("[]")
    return ("127.0.0.1" if host == "localhost" else host), int(match["port"])


def parse_nodes(body: bytes) -> list[RayEvent]:
    nodes = json.loads(body)["data"]["result"]["result"]
    return [_dead_node(node) for node in nodes if node["state"] == "DEAD"]


def parse_jobs(body: bytes) -> list[RayEvent]:
    return [
        _ended_job(job, kind)
        for job in json.loads(body)
        if (kind := JOB_ENDS.get(job["status"])) is not None
    ]


def _dead_node(node: Any) -> RayEvent:
    fields = {"node": clean(str(node["node_id"])), "address": clean(str(node.get("node_ip", "")))}
    message = (
        f"node {fields['node']} at {fields['address']} is dead:"
        f" {node.get('state_message') or 'no reason given'}"
    )
    return RayEvent(
        int(node["end_time_ms"]) * NS_PER_MS or None,
        "ray_node_dead",
        fields["node"],
        message,
        dict(fields),
    )


def _ended_job(job: Any, kind: str) -> RayEvent:
    name = clean(str(job.get("submission_id") or job.get("job_id")))
    ended_ms = job.get("end_time")
    message = str(job.get("message") or "").partition(", last available logs")[0]
    message = f"job {name} {'failed' if kind == 'ray_job_failed' else 'succeeded'}: {message}"
    fields = {"submission": name, "job": clean(str(job.get("job_id") or "")) or None}
    return RayEvent(
        int(ended_ms) * NS_PER_MS if ended_ms else None, kind, name, message, dict(fields)
    )


class Dashboard:
    def __init__(self, address: str, timeout_s: float = TIMEOUT_S) -> None:
        self._host, self._port = parse_address(address)
        self._timeout_s = timeout_s

    def read(self) -> list[RayEvent]:
        """All that is dead, and all that ended, old and new."""
        health, answer = self._get(_HEALTH)
        events = []
        if health != 200:
            message = f"the GCS is not well: {clean(answer[:200])}"
            events.append(
                RayEvent(None, "ray_health_check_failed", None, message, {"status": health})
            )
        try:
            return events + parse_nodes(self._get(_NODES)[1]) + parse_jobs(self._get(_JOBS)[1])
        except UNEXPECTED_FORM as error:
            raise SourceUnavailable(
                f"Ray's dashboard answers in an unknown form: {error!r}"
            ) from None

    def _get(self, target: str) -> tuple[int, bytes]:
        return http_get(
            lambda: DaemonSocket.connect_tcp(
                self._host, self._port, self._timeout_s, _ANSWER_BYTES
            ),
            target,
        )
