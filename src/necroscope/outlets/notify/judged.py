"""An incident as it travels: from the process that judges to the one that tells, into its notebook,
and out to others.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

_REPORT_BYTES: Final = 128 << 10
# The least needed first.
_DISPENSABLE: Final = ("alternatives", "episodes", "events", "verdict")


@dataclass(frozen=True, slots=True)
class Judged:
    """What a message needs of an incident, and `report`: all of it, as `diagnose --json` tells
    it.
    """

    id: str
    node: str
    from_ns: int
    to_ns: int
    core: int | None
    mode: str | None
    cause: str
    confidence: float
    title: str
    summary: str
    report: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Judged":
        return cls(**{name: content[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class Judgement:
    """All incidents of a stretch of a recording, which reaches to `end_ns`; `is_live`: somebody
    still records.
    """

    end_ns: int
    is_live: bool
    labels: dict[str, str]
    incidents: tuple[Judged, ...]


def bounded(report: dict[str, Any]) -> dict[str, Any]:
    """A report that fits into a message and a notebook; what had to go is named in `left_out`."""
    kept, left_out = dict(report), []
    for part in _DISPENSABLE:
        if len(json.dumps(kept)) <= _REPORT_BYTES:
            break
        kept.pop(part, None)
        left_out.append(part)
    return kept | {"left_out": left_out} if left_out else kept
