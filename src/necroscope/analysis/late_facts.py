"""What a verdict still lacks of its origin, and which rows supply it.

Who makes a container, what it is called, which file and package bring a unit: daemons are asked
every ten seconds, packages hourly. An incident may be judged before such a row is there.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from necroscope.analysis.recreations import MADE, START
from necroscope.analysis.report import Origin, Verdict

TABLES: Final = {
    "events": ("time", "kind", "fields"),
    "containers": ("time", "container", "name"),
    "units": ("time", "unit", "fragment"),
    "facts": ("time", "kind", "name"),
}
_PACKAGE: Final = "unit_package"
# A container without a name is called by these first digits of its id.
_SHORT_ID: Final = 12
_ANY: Final = "*"


class LateFact(NamedTuple):
    """`kind` says what it is about (`made`, `named`, `file`, `package`), `name` of what."""

    kind: str
    name: str


def lacking(verdict: Verdict) -> frozenset[LateFact]:
    """What would complete it."""
    origin, culprit = verdict.origin, verdict.culprit
    found = set(_of_origin(origin)) if origin is not None else set(_without_origin(verdict))
    containers = [culprit.container if culprit else None]
    containers += [origin.name] if origin is not None and origin.kind == "container" else []
    found |= {LateFact("named", name) for name in containers if name and _is_id(name)}
    return frozenset(found)


def _of_origin(origin: Origin) -> Iterator[LateFact]:
    known = {kind for kind, _ in origin.chain}
    if origin.kind == "container":
        yield LateFact("made", origin.name)
    elif origin.kind == "cgroup":
        yield LateFact("made", _ANY)
    elif origin.kind == "unit" and "container" in known:
        if "file" not in known:
            yield LateFact("file", origin.name)
        if "package" not in known:
            yield LateFact("package", origin.name)


def _without_origin(verdict: Verdict) -> Iterator[LateFact]:
    """Whose cgroups they are was asked, and not known yet."""
    if any(item.table in ("cgroups", "cgroup_ledger") for item in verdict.evidence):
        yield LateFact("made", _ANY)


def supplied(table: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[LateFact]:
    """What rows of one of `TABLES` supply."""
    for row in rows:
        if table == "events" and row["kind"] in (MADE, START):
            yield from _of_event(row)
        elif table == "containers" and row["name"] and row["container"]:
            yield LateFact("named", str(row["container"])[:_SHORT_ID])
        elif table == "units" and row["fragment"]:
            yield LateFact("file", str(row["unit"]))
        elif table == "facts" and row["kind"] == _PACKAGE:
            yield LateFact("package", str(row["name"]))


def _of_event(row: Mapping[str, Any]) -> Iterator[LateFact]:
    try:
        fields = json.loads(row["fields"])
        name, container = str(fields.get("name", "")), str(fields.get("container", ""))
    except (TypeError, ValueError, RecursionError, AttributeError):
        return
    if row["kind"] == MADE:
        yield from (LateFact("made", name), LateFact("made", _ANY))
    elif name and container:
        yield LateFact("named", container[:_SHORT_ID])


def _is_id(name: str) -> bool:
    return len(name) == _SHORT_ID and all(letter in "0123456789abcdef" for letter in name)
