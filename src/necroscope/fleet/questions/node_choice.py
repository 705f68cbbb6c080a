"""Nodes by an expression (see `fleet.where`), as their labels and facts stood at the end of a
span.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.cohorts.columns import Fact, FactMatrix
from necroscope.fleet.fact_matrix import read_fact_matrix
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.occurrences import read_nodes_by_name
from necroscope.fleet.questions.presence import read_presence
from necroscope.fleet.where import parse
from necroscope.model.span import Span


@dataclass(slots=True)
class NodeIndex:
    """All nodes that were seen in the span; what an expression asks of them is read when it is
    asked.

    `clocks_off` are known too, wherever their own time lies: the collector's clock minus that of
    each.
    """

    questions: LakeQuestions
    span: Span
    clocks_off: Mapping[NodeKey, int] = field(default_factory=dict)
    _keys: list[NodeKey] = field(init=False)
    _labels: FactMatrix | None = None

    def __post_init__(self) -> None:
        self._keys = sorted(
            read_presence(self.questions, self.span).nodes() | self.clocks_off.keys()
        )

    def all(self) -> frozenset[NodeKey]:
        return frozenset(self._keys)

    def having(self, name: str, matches: Callable[[str], bool]) -> frozenset[NodeKey]:
        if name == "node":
            return frozenset(key for key in self._keys if matches(key[1]))
        if name == "cluster":
            return frozenset(key for key in self._keys if matches(key[0]))
        if name in ("event", "cause"):
            return self._nodes_with(name, matches)
        kind, colon, fact = name.partition(":")
        if colon:
            return self._with_fact(
                self._read(lambda each: each == (kind, fact)), (kind, fact), matches
            )
        return self._with_fact(self._all_labels(), ("label", name), matches)

    def labels(self) -> dict[NodeKey, dict[str, str]]:
        """Of every node."""
        matrix = self._all_labels()
        found: dict[NodeKey, dict[str, str]] = {key: {} for key in self._keys}
        for (_, name), row in zip(matrix.facts, matrix.pair.tolist(), strict=True):
            for key, pair in zip(self._keys, row, strict=True):
                value = matrix.values[pair]
                if value is not None:
                    found[key][name] = value
        return found

    def values(self, name: str) -> dict[NodeKey, str]:
        """Of a name as in expressions (a label, `kind:name` of a fact, `cluster`, `node`) the value
        of each node that has it.
        """
        if name in ("cluster", "node"):
            return {key: key[name == "node"] for key in self._keys}
        kind, colon, fact = name.partition(":")
        wanted = (kind, fact) if colon else ("label", name)
        matrix = self._read(lambda each: each == wanted) if colon else self._all_labels()
        if wanted not in matrix.facts:
            return {}
        found = [matrix.values[pair] for pair in matrix.pair[matrix.facts.index(wanted)].tolist()]
        return {
            key: value for key, value in zip(self._keys, found, strict=True) if value is not None
        }

    def _all_labels(self) -> FactMatrix:
        if self._labels is None:
            self._labels = self._read(lambda each: each[0] == "label")
        return self._labels

    def _read(self, is_wanted: Callable[[Fact], bool]) -> FactMatrix:
        questions = self.questions
        moments = {key: self.span.to_ns - 1 - self.clocks_off.get(key, 0) for key in self._keys}
        return questions.again_if_merged(
            lambda: read_fact_matrix(questions.lake, moments, questions.clusters, is_wanted)
        )

    def _with_fact(
        self, matrix: FactMatrix, fact: Fact, matches: Callable[[str], bool]
    ) -> frozenset[NodeKey]:
        if fact not in matrix.facts:
            if fact[0] == "label":
                there = ", ".join(sorted(name for _, name in matrix.facts)) or "none"
                raise UsageError(
                    f"no node has a label {fact[1]!r}",
                    f"labels are: {there}; a fact is chosen as kind:name",
                )
            raise UsageError(
                f"no node has a fact {fact[0]}:{fact[1]}",
                "see the facts of two nodes with: necroscope fleet diff A B",
            )
        row = matrix.facts.index(fact)
        is_chosen = np.array(
            [value is not None and matches(value) for value in matrix.values], np.bool_
        )
        return frozenset(
            self._keys[node] for node in np.flatnonzero(is_chosen[matrix.pair[row]]).tolist()
        )

    def _nodes_with(self, what: str, matches: Callable[[str], bool]) -> frozenset[NodeKey]:
        by_name = read_nodes_by_name(self.questions, what, self.span)
        return (
            frozenset(key for name, keys in by_name.items() if matches(name) for key in keys)
            & self.all()
        )


def choose(questions: LakeQuestions, expression: str, span: Span) -> frozenset[NodeKey]:
    return parse(expression).choose(NodeIndex(questions, span))
