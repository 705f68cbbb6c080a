"""A row of `events` for what a daemon or a log file of the node told: never the kernel's own
word.
"""

import json
from typing import Final

from necroscope.model.names import LINE_LIMIT, clean
from necroscope.model.reading import Row

INFO: Final = 6
WARNING: Final = 4
ERROR: Final = 3
NOTICE: Final = 5
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
    text = clean(message, LINE_LIMIT)
    return (
        time_ns,
        kind,
        None,
        None,
        None,
        None,
        pid,
        None,
        severity,
        False,
        None,
        text,
        None,
        json.dumps(known),
    )
