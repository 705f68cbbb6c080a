"""`fleet baseline`: what runs on these nodes that no one asked for, which units never succeed
anywhere, and how often the others do.

No one asked for what the vendor's preset enables, or, where a list says what is expected, for what
is not on it.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions, View
from necroscope.fleet.cohorts.allow_list import AllowList
from necroscope.fleet.cohorts.columns import FactMatrix
from necroscope.fleet.fact_matrix import node_names, read_fact_matrix
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.node_choice import NodeIndex
from necroscope.fleet.questions.success import Ends
from necroscope.fleet.where import parse
from necroscope.model.span import Span

SCHEMA: Final = 1
_MOST: Final = 1_000
_MOST_NODES: Final = 20
_STATE, _PRESET, _OUTCOME = "unit_file", "unit_preset", "unit_outcome"
_WELL: Final = "succeeded"
_TROUBLE: Final = ("crash-loop", "failed", "condition-failed", "never-started")
# What runs: units by what came of them, and what containers bring along.
_RUNNING: Final = (_OUTCOME, "image", "executable")
_WANTED: Final = frozenset({_STATE, _PRESET, *_RUNNING})
_RUNS: Final = """
SELECT name, count(*) FILTER (outcome = 'success'), count(*)
FROM jobs JOIN chosen USING (cluster, node) WHERE kind = 'unit' GROUP BY ALL
"""


@dataclass(frozen=True, slots=True)
class UnitRecord:
    """Of one unit over all nodes that have it enabled: `outcomes` by what came of it, `runs` as
    they ended in the time asked about. `by_vendor` of its nodes have it by the vendor's preset.
    """

    name: str
    nodes: int
    outcomes: dict[str, int]
    by_vendor: int
    success: int
    runs: int

    @property
    def never_succeeds(self) -> bool:
        return not self.success and not self.outcomes.get(_WELL) and bool(self.outcomes)

    def as_json(self) -> dict[str, Any]:
        return {
            "unit": self.name,
            "nodes": self.nodes,
            "outcomes": self.outcomes,
            "by_vendor": self.by_vendor,
            "never_succeeds": self.never_succeeds,
            **Ends(self.success, self.runs).as_json(),
        }


@dataclass(frozen=True, slots=True)
class UnwantedItem:
    """Something that runs and that no one asked for; `node_names` are the first of its `nodes`."""

    kind: str
    name: str
    reason: str
    nodes: int
    node_names: tuple[str, ...]
    never_succeeds: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "reason": self.reason,
            "nodes": self.nodes,
            "node_names": list(self.node_names),
            "never_succeeds": self.never_succeeds,
        }


@dataclass(frozen=True, slots=True)
class BaselineAnswer:
    span: Span
    where: str | None
    nodes: int
    unasked: tuple[UnwantedItem, ...]
    units: tuple[UnitRecord, ...]

    def as_json(self) -> dict[str, Any]:
        never = [each for each in self.units if each.never_succeeds]
        return {
            "schema": SCHEMA,
            **self.span.as_json(),
            "where": self.where,
            "nodes": self.nodes,
            "summary": (
                f"on {self.nodes} nodes {len(self.unasked)} things run that no one asked for;"
                f" {len(never)} of {len(self.units)} enabled units succeed nowhere"
            ),
            "unasked": [each.as_json() for each in self.unasked[:_MOST]],
            "unasked_count": len(self.unasked),
            "never_succeed": [each.name for each in never[:_MOST]],
            "units": [each.as_json() for each in self.units[:_MOST]],
            "unit_count": len(self.units),
        }


def baseline(
    questions: LakeQuestions, span: Span, where: str | None = None, expected: str | None = None
) -> BaselineAnswer:
    """`expected` are lines as in an allow-list; None: the vendor's presets say it."""
    known = NodeIndex(questions, span)
    keys = sorted(known.all() if where is None else parse(where).choose(known))
    if not keys:
        raise UsageError(
            f"no node is chosen by {where!r}" if where else "no node was heard of in this time",
            "see: necroscope fleet nodes",
        )
    moments = dict.fromkeys(keys, span.to_ns - 1)
    matrix = questions.again_if_merged(
        lambda: read_fact_matrix(
            questions.lake, moments, questions.clusters, lambda fact: fact[0] in _WANTED
        )
    )
    units = _units(matrix, _read_runs(questions, keys, span))
    allow = None if expected is None else AllowList.parse(expected, "the list of what is expected")
    unasked = _find_unwanted(matrix, units, keys, allow)
    return BaselineAnswer(span, where, len(keys), tuple(unasked), tuple(units))


def _read_runs(
    questions: LakeQuestions, keys: Sequence[NodeKey], span: Span
) -> dict[str, tuple[int, int]]:
    chosen = pa.table(
        [[cluster for cluster, _ in keys], [node for _, node in keys]], names=["cluster", "node"]
    )
    view = View(span, ("kind", "name", "outcome"))
    rows = questions.rows(_RUNS, {"jobs": view}, tables={"chosen": chosen})
    return {name: (success, runs) for name, success, runs in rows}


def _units(matrix: FactMatrix, runs: dict[str, tuple[int, int]]) -> list[UnitRecord]:
    """Those that succeed nowhere first, then those that succeed least."""
    values: dict[str, dict[str, list[str | None]]] = defaultdict(dict)
    for (kind, name), row in zip(matrix.facts, matrix.pair, strict=True):
        if kind in (_STATE, _PRESET, _OUTCOME):
            values[name][kind] = [matrix.values[pair] for pair in row.tolist()]
    nothing: list[str | None] = [None] * len(matrix.nodes)
    found = []
    for name, facts in values.items():
        outcomes = Counter(value for value in facts.get(_OUTCOME, nothing) if value is not None)
        if outcomes:
            success, ended = runs.get(name, (0, 0))
            presets = zip(facts.get(_PRESET, nothing), facts.get(_OUTCOME, nothing), strict=True)
            by_vendor = sum(preset == "enabled" and came is not None for preset, came in presets)
            total = sum(outcomes.values())
            found.append(
                UnitRecord(name, total, dict(outcomes.most_common()), by_vendor, success, ended)
            )
    return sorted(found, key=_display_order)


def _display_order(unit: UnitRecord) -> tuple[bool, float, int, str]:
    in_trouble = sum(unit.outcomes.get(outcome, 0) for outcome in _TROUBLE)
    rate = unit.success / unit.runs if unit.runs else 1.0
    return not unit.never_succeeds, rate, -in_trouble, unit.name


def _find_unwanted(
    matrix: FactMatrix,
    units: Sequence[UnitRecord],
    keys: Sequence[NodeKey],
    allow: AllowList | None,
) -> list[UnwantedItem]:
    by_name = {unit.name: unit for unit in units}
    names = node_names(keys)
    found = []
    for (kind, name), row in zip(matrix.facts, matrix.pair.tolist(), strict=True):
        values = [matrix.values[pair] for pair in row]
        having = [node for node, value in zip(names, values, strict=True) if value is not None]
        reason = _reason(kind, name, by_name.get(name), values, allow) if having else None
        if reason is not None:
            never = kind == _OUTCOME and by_name[name].never_succeeds
            found.append(
                UnwantedItem(kind, name, reason, len(having), tuple(having[:_MOST_NODES]), never)
            )
    return sorted(
        found, key=lambda each: (not each.never_succeeds, each.nodes, each.kind, each.name)
    )


def _reason(
    kind: str,
    name: str,
    unit: UnitRecord | None,
    values: Sequence[str | None],
    allow: AllowList | None,
) -> str | None:
    if kind not in _RUNNING:
        return None
    if allow is not None:
        present = [value for value in values if value is not None]
        return None if allow.allows(kind, name, present) else "it is not on the list"
    if kind == _OUTCOME and unit is not None and unit.by_vendor:
        return f"the vendor's preset enables it on {unit.by_vendor} of {unit.nodes} nodes"
    return None
