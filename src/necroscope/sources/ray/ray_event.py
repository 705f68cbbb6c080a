"""What Ray said happened: the form that log lines, event files and the dashboard are brought
into.
"""

from typing import Final, NamedTuple

from necroscope.sources.service_event import Fields

# What JSON of an unexpected form raises when it is read; ArithmeticError is int of its Infinity.
UNEXPECTED_FORM: Final = (
    *(ValueError, KeyError, TypeError, AttributeError),
    *(RecursionError, ArithmeticError),
)


class RayEvent(NamedTuple):
    """`time_ns` is the machine's clock, None where it is unknown. `key` names what it happened
    to: reported only once for each.
    """

    time_ns: int | None
    kind: str
    key: str | None
    message: str
    fields: Fields
