"""What Ray said happened: the form that log lines, event files and the dashboard are brought
into.
"""

from typing import NamedTuple

from necroscope.sources.service_event import Fields


class RayEvent(NamedTuple):
    """`time_ns` is the machine's clock, None where it is unknown. `key` names what it happened
    to: told only once for each.
    """

    time_ns: int | None
    kind: str
    key: str | None
    message: str
    fields: Fields
