"""Minute stacks of many nodes summed by process and path. Texts stay numbers: an hour of 1,000
nodes is millions of rows.

A row may be in two files, while they are merged. Rows are told apart by a hash of all their
columns, and counted once.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions, question_bytes
from necroscope.fleet.lake_tables import NodeKey
from necroscope.model.span import Span
from necroscope.stacks.samples import codes
from necroscope.stacks.tree import Numbers

Stack = tuple[str, str]
_TEXTS: Final = ("cluster", "node", "comm", "cgroup", "path")
_BATCH_ROWS: Final = 1 << 16
# Of memory at the peak, when copies that came twice are looked for.
_ROW_BYTES: Final = 64
# Odd, with bits all over (the golden ratio): multiplied by it, neighbours end up far apart.
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


def sum_stacks(
    questions: LakeQuestions, span: Span, sides: Mapping[NodeKey, int], count: int
) -> dict[Stack, list[float]]:
    """Time in nanoseconds of each process and path, on each of `count` sides; a node's sides are
    the bits of its number.
    """
    ends_s = time.monotonic() + questions.longest_s
    return questions.again_if_merged(lambda: _Sums(sides).read(questions, span, count, ends_s))


def most_rows() -> int:
    return question_bytes() // _ROW_BYTES


class _Sums:
    def __init__(self, sides: Mapping[NodeKey, int]) -> None:
        self._node_of = {key: number for number, key in enumerate(sides)}
        self._side_of = np.array(list(sides.values()), np.int8)
        self._stacks: dict[Stack, int] = {}
        self._rows: list[
            tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.float64], NDArray[np.int8]]
        ] = []

    def read(
        self, questions: LakeQuestions, span: Span, count: int, ends_s: float
    ) -> dict[Stack, list[float]]:
        most = most_rows()
        for batch in _batches(questions, span):
            self._add(batch)
            if time.monotonic() > ends_s:
                raise questions.took_too_long()
            if sum(len(rows[0]) for rows in self._rows) > most:
                raise UsageError(
                    f"more than {most:,} rows of stacks",
                    "ask about less time (--since) or fewer nodes (--where)",
                )
        if not self._rows:
            return {}
        identity, stack, weight, side = (
            np.concatenate(column) for column in zip(*self._rows, strict=True)
        )
        _, once = np.unique(identity, return_index=True)
        sums = [
            np.bincount(
                stack[once], np.where(side[once] >> bit & 1, weight[once], 0), len(self._stacks)
            ).tolist()
            for bit in range(count)
        ]
        return {key: [of_side[number] for of_side in sums] for key, number in self._stacks.items()}

    def _add(self, batch: pa.RecordBatch) -> None:
        coded = {name: codes(pa.chunked_array([batch.column(name)])) for name in _TEXTS}
        clusters, nodes = (
            dictionary.to_pylist() for _, dictionary in (coded["cluster"], coded["node"])
        )
        known = [self._node_of.get((cluster, node), -1) for cluster in clusters for node in nodes]
        node = np.array(known, np.int64)[coded["cluster"][0] * len(nodes) + coded["node"][0]]
        rows = np.flatnonzero(node >= 0)
        if rows.size:
            samples, period_ns, time_ns = (
                batch.column(name).to_numpy()[rows] for name in ("samples", "period_ns", "time")
            )
            texts = [_hashes(*coded[name])[rows] for name in ("comm", "cgroup", "path")]
            identity = _hash(node[rows], time_ns, samples, period_ns, *texts)
            weight = samples.astype(np.float64) * period_ns
            number = self._numbers(*coded["comm"], *coded["path"], rows)
            self._rows.append((identity, number, weight, self._side_of[node[rows]]))

    def _numbers(
        self, comm: Numbers, comms: pa.Array, path: Numbers, paths: pa.Array, rows: Numbers
    ) -> NDArray[np.int32]:
        """The number of each row's process and path."""
        width = len(paths)
        coded = pa.array(comm[rows] * width + path[rows]).dictionary_encode()
        pairs = [
            (comms[code // width].as_py(), paths[code % width].as_py())
            for code in coded.dictionary.to_pylist()
        ]
        numbers = np.array(
            [self._stacks.setdefault(pair, len(self._stacks)) for pair in pairs], np.int32
        )
        return np.asarray(numbers[coded.indices.to_numpy()])


def _batches(questions: LakeQuestions, span: Span) -> Iterator[pa.RecordBatch]:
    """A day has many files; those that hold none of the span are passed over by what they say of
    themselves.
    """
    stored = questions.lake.dataset("stack_minutes", span.from_ns, span.to_ns, questions.clusters)
    if stored.files:
        form = ds.ParquetFileFormat(dictionary_columns=list(_TEXTS))
        coded = ds.dataset(stored.files, filesystem=stored.filesystem, format=form)
        asked = (ds.field("time") >= span.from_ns) & (ds.field("time") < span.to_ns)
        columns = [*_TEXTS, "time", "samples", "period_ns"]
        yield from coded.scanner(
            columns=columns, filter=asked, batch_size=_BATCH_ROWS, batch_readahead=2
        ).to_batches()


def _hashes(numbers: Numbers, texts: pa.Array) -> Numbers:
    return np.array([*map(hash, texts.to_pylist()), 0], np.int64)[numbers]


def _hash(*columns: NDArray[np.generic]) -> NDArray[np.uint64]:
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        found = (found ^ column.astype(np.int64).view(np.uint64)) * _SPREAD
        found ^= found >> np.uint64(29)
    return found
