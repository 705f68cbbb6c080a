"""An incident as the ledger keeps it: the whole typed incident, its state, and when that changed.

Standard library only: outlets that live for weeks read the ledger without numpy.
"""

import json
import math
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, cast, get_args, get_origin, get_type_hints

from necroscope.analysis.report import Incident

# A report with every event of an hour would be larger than all else in the ledger.
_MOST_CHARACTERS: Final = 128 << 10
_KEPT_ITEMS: Final = (200, 50, 10, 0)
_PLAIN: Final = (int, float, str, bool, NoneType)
_Plain = TypeVar("_Plain")


class IncidentState(StrEnum):
    """`open` goes on, `closed` is over, `merged` turned out to be part of another incident."""

    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """`revision` grows with every change of the ledger: who has seen all up to one has missed none.

    `incident.id` was given when it was first seen and stays. `merged_into` is the id of another.
    `judged_ns` is how far the recording reached when the verdict was made.
    """

    state: IncidentState
    revision: int
    incident: Incident
    merged_into: str | None = None
    judged_ns: int = 0

    @property
    def id(self) -> str:
        return self.incident.id

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: object) -> "LedgerEntry":
        """TypeError or ValueError if it is not one: a recording may come from anywhere."""
        return cast("LedgerEntry", _to_type(cls, content))


def bounded(incident: Incident) -> Incident:
    """One that fits into the ledger: long lists are cut, the verdict is not."""
    for most in _KEPT_ITEMS:
        if len(json.dumps(asdict(incident))) <= _MOST_CHARACTERS:
            break
        incident = replace(
            incident, events=incident.events[:most], episodes=incident.episodes[:most]
        )
    return incident


def _to_type(kind: Any, value: object) -> object:
    """JSON as what the annotations of our dataclasses say."""
    if is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, dict):
            raise TypeError(f"{kind.__name__} is not an object")
        hints = get_type_hints(kind)
        # A ledger of an older version lacks what was added since, which has a default.
        given = [one for one in fields(kind) if one.name in value or one.default is MISSING]
        return kind(**{one.name: _to_type(hints[one.name], value[one.name]) for one in given})
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            raise TypeError("not a list")
        return tuple(_to_type(get_args(kind)[0], item) for item in value)
    if get_origin(kind) is UnionType:
        if value is None:
            return None
        return _to_type(next(one for one in get_args(kind) if one is not NoneType), value)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(str(value))
    return take_plain(kind, value)


def take_plain(kind: type[_Plain], value: object) -> _Plain:
    """Whole numbers fit into 64 bits, others are finite: a checksum stops no author."""
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        raise ValueError("a number is out of bounds")
    if kind is float and type(value) is int:
        value = float(value)
    if kind not in _PLAIN or type(value) is not kind:
        raise TypeError(f"{value!r:.80} is not of type {kind}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value
