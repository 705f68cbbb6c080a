"""Ray's event files, one JSON object a line: `events/event_*.log`, always there, and
`export_events/event_EXPORT_*.log`, written with RAY_enable_export_api_write=1
(src/ray/protobuf/export_*.proto).
"""

import base64
import json
import re
from collections.abc import Callable
from typing import Any, Final

from necroscope.model.names import clean
from necroscope.model.units import NS_PER_MS, NS_PER_S
from necroscope.sources.ray.ray_event import UNEXPECTED_FORM, RayEvent

TELLING: Final = re.compile(
    rb"RAY_NODE_REMOVED|RAY_DRIVER_FAILURE|status (FAILED|SUCCEEDED)|\"(DEAD|FAILED|SUCCEEDED)\""
)
# Ways for an actor to end that are not failures (ActorDiedErrorContext.Reason, WorkerExitType).
_WANTED_ENDS: Final = ("OUT_OF_SCOPE", "REF_DELETED", "INTENDED", "RAY_KILL", "JOB_FINISHED")
# What a job's last status becomes; a job that a user stopped neither failed nor succeeded.
JOB_ENDS: Final = {"FAILED": "ray_job_failed", "SUCCEEDED": "ray_job_succeeded"}


def parse(line: bytes, _read_ns: int = 0) -> RayEvent | None:
    """None for what is neither a failure nor the end of a job, and for what cannot be read."""
    try:
        event = json.loads(line)
        read = _READERS.get(event["source_type"])
        return read(event) if read is not None else None
    except UNEXPECTED_FORM:
        return None


def _gcs(event: Any) -> RayEvent | None:
    if event["label"] != "RAY_NODE_REMOVED":
        return None
    known = event["custom_fields"]
    fields = {"node": clean(str(known["node_id"])), "address": clean(str(known.get("ip", "")))}
    return RayEvent(
        _seconds_ns(event), "ray_node_dead", fields["node"], str(event["message"]), dict(fields)
    )


def _raylet(event: Any) -> RayEvent | None:
    if event["label"] != "RAY_DRIVER_FAILURE":
        return None
    job = clean(str(event["custom_fields"]["job_id"]))
    return RayEvent(_seconds_ns(event), "ray_job_failed", job, str(event["message"]), {"job": job})


def _jobs(event: Any) -> RayEvent | None:
    kind = JOB_ENDS.get(str(event["message"]).rstrip(".").rpartition("status ")[2])
    if kind is None:
        return None
    submission = clean(str(event["custom_fields"]["submission_id"]))
    return RayEvent(
        _seconds_ns(event), kind, submission, str(event["message"]), {"submission": submission}
    )


def _export_node(event: Any) -> RayEvent | None:
    data = event["event_data"]
    if data["state"] != "DEAD":
        return None
    death = data.get("death_info") or {}
    fields = {
        "node": _hex(data["node_id"]),
        "address": clean(str(data.get("node_manager_address", ""))),
        "reason": clean(str(death.get("reason", ""))),
    }
    message = (
        f"node {fields['node']} at {fields['address']} is dead:"
        f" {death.get('reason_message', fields['reason'])}"
    )
    return RayEvent(
        int(data["end_time_ms"]) * NS_PER_MS, "ray_node_dead", fields["node"], message, dict(fields)
    )


def _export_actor(event: Any) -> RayEvent | None:
    data = event["event_data"]
    if data["state"] != "DEAD":
        return None
    death = (data.get("death_cause") or {}).get("actor_died_error_context") or {}
    reason, error = str(death.get("reason", "")), str(death.get("error_message", ""))
    if any(wanted in reason or wanted in error for wanted in _WANTED_ENDS):
        return None
    fields = {
        "actor": _hex(data["actor_id"]),
        "class": clean(str(data.get("class_name", ""))),
        "node": _hex(data["node_id"]),
        "reason": clean(reason),
    }
    message = (
        f"actor {fields['class']} {fields['actor']} died:"
        f" {error.splitlines()[0] if error else reason}"
    )
    return RayEvent(_seconds_ns(event), "ray_actor_died", fields["actor"], message, dict(fields))


def _export_submission(event: Any) -> RayEvent | None:
    data = event["event_data"]
    kind = JOB_ENDS.get(data["status"])
    if kind is None:
        return None
    submission = clean(str(data["submission_job_id"]))
    code = data.get("driver_exit_code")
    # The message holds the end of the job's own log, which may hold anything: only its first line
    # is Ray's.
    line = str(data.get("message", "")).partition("\n")[0].partition(", last available logs")[0]
    message = f"job {submission} {'failed' if kind == 'ray_job_failed' else 'succeeded'}: {line}"
    fields = {"submission": submission, "exit_code": int(code) if code is not None else None}
    return RayEvent(int(data["end_time"]) * NS_PER_MS, kind, submission, message, dict(fields))


_READERS: Final[dict[str, Callable[[Any], RayEvent | None]]] = {
    "GCS": _gcs,
    "RAYLET": _raylet,
    "JOBS": _jobs,
    "EXPORT_NODE": _export_node,
    "EXPORT_ACTOR": _export_actor,
    "EXPORT_SUBMISSION_JOB": _export_submission,
}


def _seconds_ns(event: Any) -> int:
    return int(event["timestamp"]) * NS_PER_S


def _hex(encoded: str) -> str:
    """Export events write ids in base64, everything else of Ray's in hexadecimal."""
    return base64.b64decode(encoded, validate=True).hex()
