"""The facts of many nodes as they stood at a moment of each, out of the lake, as the matrix that
`cohorts` works on.

    rows of a batch                              cells, by node and fact
    node   fact           value    second        _value_of_cell         _second_of_cell
    n0  0  label zone  0  a    1       10                zone  unit            zone  unit
    n0  0  unit x      1  on   2       10          n0      1     3       n0      0    20
    n0  0  unit x      1  off  3       20          n1      4     0       n1      0     0
    n1  1  label zone  0  b    4       11

Twenty million rows are read in seconds: texts come as dictionaries, so that rows are numbers from
the file on, and a fact's last value before the node's moment is scattered into its cell. Value 0 is
none; second 0 is that in which the node was first met, when most facts are written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

from necroscope.fleet.cohorts.columns import Fact, FactMatrix
from necroscope.fleet.lake import Lake
from necroscope.model.units import NS_PER_S

NodeKey = tuple[str, str]
Numbers = NDArray[np.int64]
_TEXTS: Final = ("cluster", "node", "kind", "name", "value")
_BATCH_ROWS: Final = 1 << 14
_NEW: Final = -2
_LEAST_FACTS: Final = 256
_LAST_SECOND: Final = (1 << 32) - 1
_TURNED: Final = 64
# That may be numbered ahead. There are few kinds and thousands of names, unless a node makes up
# both.
_MOST_PAIRS: Final = 1 << 22


def read_fact_matrix(
    lake: Lake,
    moments: Mapping[NodeKey, int],
    clusters: Iterable[str] | None = None,
    is_wanted: Callable[[Fact], bool] | None = None,
) -> FactMatrix:
    """Of each node the facts as they stood at its moment, in the order of `moments`; rows of other
    nodes are passed over.
    """
    scatter = _Scatter(list(moments), np.array(list(moments.values()), np.int64), is_wanted)
    if moments:
        for batch in _batches(lake, max(moments.values()) + 1, clusters):
            scatter.add(batch)
    return scatter.matrix()


def with_clusters(matrix: FactMatrix, keys: Sequence[NodeKey]) -> FactMatrix:
    """The cluster as a label: it is a place too. As it is where there is one only."""
    clusters = list(dict.fromkeys(cluster for cluster, _ in keys))
    if len(clusters) < 2:
        return matrix
    first = len(matrix.values)
    row = np.array([[first + clusters.index(cluster) for cluster, _ in keys]], np.int32)
    facts = [*matrix.facts, ("label", "cluster")]
    fact_of_pair = np.append(
        matrix.fact_of_pair, np.full(len(clusters), len(matrix.facts), np.int32)
    )
    return FactMatrix(
        matrix.nodes,
        facts,
        np.concatenate([matrix.pair, row]),
        fact_of_pair,
        [*matrix.values, *clusters],
    )


def without_facts(matrix: FactMatrix) -> NDArray[np.bool_]:
    """Nodes of which nothing is known."""
    is_absent = np.array([value is None for value in matrix.values], np.bool_)
    found = np.ones(len(matrix.nodes), np.bool_)
    for row in matrix.pair:
        found &= is_absent[row]
        if not found.any():
            break
    return found


def node_names(keys: Sequence[NodeKey]) -> list[str]:
    """As people call them: with the cluster only where there are several."""
    if len({cluster for cluster, _ in keys}) <= 1:
        return [node for _, node in keys]
    return [f"{cluster}/{node}" for cluster, node in keys]


def _batches(lake: Lake, to_ns: int, clusters: Iterable[str] | None) -> Iterator[pa.RecordBatch]:
    """From the first day on: a fact that has not changed since is told there only."""
    stored = lake.dataset("facts", None, to_ns, clusters)
    if stored.files:
        form = ds.ParquetFileFormat(dictionary_columns=list(_TEXTS))
        coded = ds.dataset(stored.files, filesystem=stored.filesystem, format=form)
        # Small pieces and few of them ahead: what is worked on stays in the processor's cache, and
        # in little memory.
        scan = coded.scanner(
            columns=[*_TEXTS, "time"],
            batch_size=_BATCH_ROWS,
            batch_readahead=2,
            fragment_readahead=1,
        )
        yield from scan.to_batches()


class _Numbered:
    """Numbers for what is met, in the order in which it is met."""

    def __init__(self, met: Iterable[Any] = ()) -> None:
        self.numbers: dict[Any, int] = {each: number for number, each in enumerate(met)}

    def of(self, found: Iterable[Any]) -> Numbers:
        numbers = self.numbers
        return np.fromiter((numbers.setdefault(each, len(numbers)) for each in found), np.int64)


class _Joined:
    """Numbers of pairs of texts. Each pair is numbered once for the dictionaries it comes with,
    which many batches share.
    """

    def __init__(
        self, number: Callable[[list[Any]], Numbers], *, are_all_there: bool = False
    ) -> None:
        """`are_all_there`: every first text goes with every second one, so that all are numbered at
        once.
        """
        self._number = number
        self._are_all_there = are_all_there
        self._texts: tuple[pa.Array, pa.Array] | None = None
        self._number_of = np.zeros(0, np.int64)

    def of(self, first: pa.DictionaryArray, second: pa.DictionaryArray) -> Numbers:
        texts = first.dictionary, second.dictionary
        width = len(texts[1])
        code = _indices(second)
        if len(texts[0]) > 1:
            code += _indices(first) * width
        if len(texts[0]) * width > _MOST_PAIRS:
            pairs, place = np.unique(code, return_inverse=True)
            return self._number(_keys(texts, pairs))[place]
        if self._texts is None or not all(map(_is_same, texts, self._texts)):
            self._texts = texts
            self._number_of = np.full(len(texts[0]) * width, _NEW, np.int64)
            if self._are_all_there:
                self._number_of[:] = self._number(
                    list(product(texts[0].to_pylist(), texts[1].to_pylist()))
                )
        found = self._number_of[code]
        if found.min(initial=0) == _NEW:
            new = np.flatnonzero(np.bincount(code[found == _NEW]))
            self._number_of[new] = self._number(_keys(texts, new))
            found = self._number_of[code]
        return found


def _keys(texts: tuple[pa.Array, pa.Array], pairs: Numbers) -> list[Any]:
    width = len(texts[1])
    return [
        (texts[0][each // width].as_py(), texts[1][each % width].as_py()) for each in pairs.tolist()
    ]


class _Scatter:
    """Rows in any order; `matrix` is what they come to."""

    def __init__(
        self, nodes: list[NodeKey], moments: Numbers, is_wanted: Callable[[Fact], bool] | None
    ) -> None:
        self._nodes = nodes
        self._moments = moments
        self._is_wanted = is_wanted
        self._earliest_ns = int(moments.min()) if len(moments) else 0
        self._node_of = {key: number for number, key in enumerate(nodes)}
        self._facts, self._values = _Numbered(), _Numbered([None])
        self._joined_nodes, self._joined_facts = (
            _Joined(self._number_nodes, are_all_there=True),
            _Joined(self._number_facts),
        )
        self._texts: pa.Array | None = None
        self._text_numbers = np.zeros(0, np.int64)
        # One row of cells per node, as the files have it: the number of a fact's value, and the
        # second of its row. Most facts are written once, when a node is first met: that moment is
        # kept for the node, and is 0 in the cell. Within a second the row that is read later
        # counts: files are sorted by time.
        self._value_of_cell = np.zeros((len(nodes), 0), np.int32)
        self._second_of_cell = np.zeros((len(nodes), 0), np.uint32)
        self._first_ns = np.zeros(len(nodes), np.int64)

    def add(self, batch: pa.RecordBatch) -> None:
        columns = {name: batch.column(name) for name in batch.schema.names}
        node = self._joined_nodes.of(columns["cluster"], columns["node"])
        fact = self._joined_facts.of(columns["kind"], columns["name"])
        time_ns = columns["time"].to_numpy()
        value = self._value(columns["value"])
        if self._is_wanted or node.min(initial=0) < 0 or time_ns.max(initial=0) > self._earliest_ns:
            rows = np.flatnonzero((node >= 0) & (fact >= 0) & (time_ns <= self._moments[node]))
            node, fact, value, time_ns = node[rows], fact[rows], value[rows], time_ns[rows]
        if _is_unordered(node, time_ns):
            order = np.argsort(time_ns, kind="stable")
            node, fact, value, time_ns = node[order], fact[order], value[order], time_ns[order]
        self._put(node, fact, value, time_ns)

    def matrix(self) -> FactMatrix:
        """Values of a fact are numbered anew, in place, those of one fact side by side."""
        facts, texts = list(self._facts.numbers), list(self._values.numbers)
        self._grow(len(facts))
        values: list[str | None] = []
        fact_of_pair: list[int] = []
        for start in range(0, len(facts), _TURNED):
            some = self._value_of_cell[:, start : min(start + _TURNED, len(facts))]
            turned = np.ascontiguousarray(some.T)
            for fact, row in enumerate(turned, start):
                coded = pa.array(row).dictionary_encode()
                np.add(coded.indices.to_numpy(), len(values), out=row, casting="unsafe")
                values += [texts[number] for number in coded.dictionary.to_pylist()]
                fact_of_pair += [fact] * len(coded.dictionary)
            some[:] = turned.T
        pair = self._value_of_cell[:, : len(facts)].T
        return FactMatrix(
            node_names(self._nodes), facts, pair, np.array(fact_of_pair, np.int32), values
        )

    def _put(self, node: Numbers, fact: Numbers, value: Numbers, time_ns: Numbers) -> None:
        """What is newer than what the cell holds; of rows for one cell the last stays."""
        self._grow(len(self._facts.numbers))
        values, seconds = self._value_of_cell.reshape(-1), self._second_of_cell.reshape(-1)
        cell = node * self._value_of_cell.shape[1] + fact
        if self._is_first(node, time_ns) and value.all() and not values[cell].any():
            values[cell] = value
            return
        second, told = _seconds(time_ns), seconds[cell]
        is_empty = (values[cell] == 0) & (told == 0)
        is_newer = is_empty | (second >= np.where(told == 0, _seconds(self._first_ns[node]), told))
        values[cell[is_newer]] = value[is_newer]
        seconds[cell[is_newer]] = second[is_newer]

    def _is_first(self, node: Numbers, time_ns: Numbers) -> bool:
        """Whether all rows were told when their node was first met."""
        known = self._first_ns[node]
        if not known.all():
            new = np.flatnonzero(known == 0)[::-1]
            # The last one assigned stays: the first row of each node.
            self._first_ns[node[new]] = time_ns[new]
            known = self._first_ns[node]
        return bool((time_ns == known).all())

    def _grow(self, facts: int) -> None:
        """To at least so many facts; memory that nobody writes to costs nothing."""
        nodes, room = self._value_of_cell.shape
        if facts > room:
            size = nodes, max(facts + facts // 4, _LEAST_FACTS)
            values, seconds = np.zeros(size, np.int32), np.zeros(size, np.uint32)
            values[:, :room], seconds[:, :room] = self._value_of_cell, self._second_of_cell
            self._value_of_cell, self._second_of_cell = values, seconds

    def _value(self, column: pa.DictionaryArray) -> Numbers:
        if self._texts is None or not _is_same(column.dictionary, self._texts):
            self._texts = column.dictionary
            # A place more, for rows without a value: the index -1 is the last.
            self._text_numbers = np.append(self._values.of(column.dictionary.to_pylist()), 0)
        return self._text_numbers[_indices(column)]

    def _number_facts(self, keys: list[Fact]) -> Numbers:
        """-1 for one that nobody asked for."""
        if self._is_wanted is None:
            return self._facts.of(keys)
        wanted = [self._is_wanted(key) for key in keys]
        numbers = iter(
            self._facts.of(key for key, is_one in zip(keys, wanted, strict=True) if is_one).tolist()
        )
        return np.array([next(numbers) if is_one else -1 for is_one in wanted], np.int64)

    def _number_nodes(self, keys: list[NodeKey]) -> Numbers:
        """-1 for a node that is not asked about."""
        return np.array([self._node_of.get(key, -1) for key in keys], np.int64)


def _seconds(time_ns: Numbers) -> NDArray[np.uint32]:
    return np.clip(time_ns // NS_PER_S, 1, _LAST_SECOND).astype(np.uint32)


def _is_unordered(node: Numbers, time_ns: Numbers) -> bool:
    """Whether an older row of a node follows a newer one: files are sorted by node and time, but
    for those of other writers.
    """
    steps = np.diff(node)
    falls = np.diff(time_ns) < 0
    # A node that comes again after another may be older there.
    return bool(falls.any() and ((steps < 0).any() or (falls & (steps == 0)).any()))


def _is_same(texts: pa.Array, others: pa.Array) -> bool:
    """Batches of one row group share their dictionaries; looking at the memory is enough for
    those.
    """
    return texts is others or (
        len(texts) == len(others)
        and texts.offset == others.offset
        and texts.buffers() == others.buffers()
    )


def _indices(column: pa.DictionaryArray) -> Numbers:
    """-1 where there is none."""
    indices = column.indices
    return np.array((indices.fill_null(-1) if indices.null_count else indices).to_numpy(), np.int64)
