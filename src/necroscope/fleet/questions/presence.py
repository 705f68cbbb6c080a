"""Who was observed, and when: the pulses of a span, to the day. A node that is silent is neither
well nor affected.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.lake_tables import DAY_NS, NodeKey
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

_TEXTS: Final = ("cluster", "node")


@dataclass(frozen=True, slots=True)
class Presence:
    """The nodes of each day that sent a pulse in the span; a day is its first nanosecond."""

    days: list[tuple[int, frozenset[NodeKey]]]

    def nodes(self) -> frozenset[NodeKey]:
        return frozenset().union(*{id(nodes): nodes for _, nodes in self.days}.values())

    def observed_ns(self, node: NodeKey, span: Span) -> int:
        """How long the node was observed within a span: whole days count where it was heard of."""
        days = [day_ns for day_ns, nodes in self.days if node in nodes]
        return sum(
            max(0, min(span.to_ns, day_ns + DAY_NS) - max(span.from_ns, day_ns)) for day_ns in days
        )

    def node_days(self, nodes: frozenset[NodeKey], span: Span) -> float:
        """Of all these nodes together. Days that the same nodes were heard on are counted once."""
        counts = {id(seen): len(seen & nodes) for _, seen in self.days}
        observed_ns = sum(
            counts[id(seen)] * max(0, min(span.to_ns, day_ns + DAY_NS) - max(span.from_ns, day_ns))
            for day_ns, seen in self.days
        )
        return observed_ns / DAY_NS


def read_presence(questions: LakeQuestions, span: Span) -> Presence:
    return questions.again_if_merged(lambda: _read(questions, span))


def _read(questions: LakeQuestions, span: Span) -> Presence:
    days: list[tuple[int, frozenset[NodeKey]]] = []
    named = _NodesOfFiles()
    for day in questions.lake.days("pulses"):
        start_ns = _start_ns(day)
        if start_ns < span.to_ns and span.from_ns < start_ns + DAY_NS:
            stored = questions.lake.dataset(
                "pulses", start_ns, start_ns + DAY_NS, questions.clusters
            )
            is_whole = span.from_ns <= start_ns and start_ns + DAY_NS <= span.to_ns
            days.append((start_ns, _nodes(stored, None if is_whole else span, named)))
    return Presence(days)


class _NodesOfFiles:
    """Nodes by the files' dictionaries. Of files that follow each other, many hold the same nodes:
    those are one set.
    """

    def __init__(self) -> None:
        self._texts: tuple[pa.Array, pa.Array] | None = None
        self._nodes: frozenset[NodeKey] = frozenset()

    def of(self, cluster: pa.Array, nodes: pa.Array) -> frozenset[NodeKey]:
        if self._texts is None or not (
            cluster.equals(self._texts[0]) and nodes.equals(self._texts[1])
        ):
            self._texts = cluster, nodes
            self._nodes = frozenset(product(cluster.to_pylist(), nodes.to_pylist()))
        return self._nodes


def _nodes(
    stored: ds.FileSystemDataset, span: Span | None, named: _NodesOfFiles
) -> frozenset[NodeKey]:
    """Of a whole day the files' dictionaries say it: no row is looked at."""
    found: frozenset[NodeKey] = frozenset()
    if not stored.files:
        return found
    coded = ds.dataset(
        stored.files,
        filesystem=stored.filesystem,
        format=ds.ParquetFileFormat(dictionary_columns=list(_TEXTS)),
    )
    for batch in coded.to_batches(columns=[*_TEXTS, "time"] if span else list(_TEXTS)):
        texts = batch.column("cluster").dictionary, batch.column("node").dictionary
        is_plain = span is None and len(texts[0]) == 1
        more = named.of(*texts) if is_plain else frozenset(_nodes_of_rows(batch, span))
        found = more if not found or more is found else found | more
    return found


def _nodes_of_rows(batch: pa.RecordBatch, span: Span | None) -> Iterable[NodeKey]:
    clusters, nodes = (batch.column(name).dictionary.to_pylist() for name in _TEXTS)
    code = (
        batch.column("cluster").indices.to_numpy().astype(np.int64) * len(nodes)
        + batch.column("node").indices.to_numpy()
    )
    if span is not None:
        time_ns = batch.column("time").to_numpy()
        code = code[(time_ns >= span.from_ns) & (time_ns < span.to_ns)]
    return (
        (clusters[each // len(nodes)], nodes[each % len(nodes)])
        for each in np.unique(code).tolist()
    )


def _start_ns(day: date) -> int:
    return (
        (datetime(day.year, day.month, day.day, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC))
        // timedelta(seconds=1)
        * NS_PER_S
    )
