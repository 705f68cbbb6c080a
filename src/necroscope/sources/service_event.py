"""A row of `events` for what a daemon or a log file of the node told: never the kernel's own
word.
"""

import json

from necroscope.model.event import WARNING, Event
from necroscope.model.names import LINE_LIMIT, clean
from necroscope.model.reading import Row

Fields = dict[str, int | str | bool | None]


def service_event(
    time_ns: int,
    kind: str,
    message: str,
    fields: Fields,
    severity: int = WARNING,
    pid: int | None = None,
) -> Row:
    """`fields` without those that are not known; texts from the machine are cleaned here."""
    known = {
        name: clean(value) if isinstance(value, str) else value
        for name, value in fields.items()
        if value is not None
    }
    return Event(
        time_ns=time_ns,
        kind=kind,
        pid=pid,
        severity=severity,
        message=clean(message, LINE_LIMIT),
        fields=json.dumps(known),
    ).row()
