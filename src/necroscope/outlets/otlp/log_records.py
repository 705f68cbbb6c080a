"""Events and incidents as OTLP log records.

Schema: opentelemetry/proto/logs/v1/logs.proto of
https://github.com/open-telemetry/opentelemetry-proto; a LogsData message is what a collector takes
as an ExportLogsServiceRequest. `event_name` is the event's kind, or `incident`; attributes are the
columns of `events`, or the verdict's fields.
"""

from collections.abc import Iterable
from typing import Any, Final

from necroscope import __version__
from necroscope.verdicts.entry import LedgerEntry

# SeverityNumber of logs.proto.
_INFO: Final = 9
_WARN: Final = 13
_EVENT_FIELDS: Final = ("cpu", "device", "queue", "pid", "comm", "pattern")


def log_message(node: str, events: Iterable[dict[str, Any]], entries: Iterable[LedgerEntry]) -> Any:
    """A LogsData message, or None if there is nothing to say."""
    # The extra `otlp`, which most do without.
    from opentelemetry.proto.logs.v1.logs_pb2 import LogsData  # noqa: PLC0415

    data = LogsData()
    resource = data.resource_logs.add()
    _set(resource.resource.attributes, "host.name", node)
    _set(resource.resource.attributes, "os.type", "linux")
    scope = resource.scope_logs.add()
    scope.scope.name, scope.scope.version = "necroscope", __version__
    for row in events:
        _add_event(scope.log_records.add(), row)
    for entry in entries:
        _add_incident(scope.log_records.add(), entry)
    return data if scope.log_records else None


def _add_event(record: Any, row: dict[str, Any]) -> None:
    record.time_unix_nano, record.severity_number = row["time"], _INFO
    record.event_name = row["kind"]
    record.body.string_value = row["message"] or row["kind"]
    for name in _EVENT_FIELDS:
        if row[name] is not None:
            _set(record.attributes, f"necroscope.{name}", row[name])


def _add_incident(record: Any, entry: LedgerEntry) -> None:
    incident, verdict = entry.incident, entry.incident.verdict
    record.time_unix_nano, record.severity_number = incident.to_ns, _WARN
    record.event_name = "incident"
    record.body.string_value = verdict.summary
    fields = {
        "id": incident.id,
        "state": entry.state.value,
        "from_unix_nano": incident.from_ns,
        "core": incident.core,
        "mode": incident.mode,
        "cause": verdict.cause,
        "confidence": verdict.confidence,
        "culprit": verdict.culprit.comm if verdict.culprit else None,
        "origin": f"{verdict.origin.kind} {verdict.origin.name}" if verdict.origin else None,
    }
    for name, value in fields.items():
        if value is not None:
            _set(record.attributes, f"necroscope.{name}", value)


def _set(attributes: Any, name: str, value: object) -> None:
    attribute = attributes.add(key=name)
    if isinstance(value, int):
        attribute.value.int_value = value
    elif isinstance(value, float):
        attribute.value.double_value = value
    else:
        attribute.value.string_value = str(value)
