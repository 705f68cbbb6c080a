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
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

from necroscope.fleet.coded_texts import Numbers, TextNumbers, TextPairNumbers, indices, is_same
from necroscope.fleet.cohorts.columns import Fact, FactMatrix
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_tables import NodeKey
from necroscope.model.units import NS_PER_S

_TEXTS: Final = ("cluster", "node", "kind", "name", "value")
_BATCH_ROWS: Final = 1 << 15
_LEAST_FACTS: Final = 256
_LAST_SECOND: Final = (1 << 32) - 1
_TURNED: Final = 64
# Rows that a node must have on average for it to be worth looking at it by itself.
_LEAST_RUN: Final = 64


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
    """From the first day on: a fact that has not changed since is reported there only."""
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


class _Scatter:
    """Rows in any order; `matrix` is what they come to."""

    def __init__(
        self, nodes: list[NodeKey], moments: Numbers, is_wanted: Callable[[Fact], bool] | None
    ) -> None:
        self._nodes = nodes
        self._moments = moments
        self._is_wanted = is_wanted
        self._node_of = {key: number for number, key in enumerate(nodes)}
        self._facts, self._values = TextNumbers(), TextNumbers([None])
        self._joined_nodes, self._joined_facts = (
            TextPairNumbers(self._number_nodes, are_all_there=True),
            TextPairNumbers(self._number_facts),
        )
        self._texts: pa.Array | None = None
        self._text_numbers = np.zeros(0, np.int32)
        self._run_facts = _RunFacts(self._joined_facts)
        # One row of cells per node, as the files have it: the number of a fact's value, and the
        # second of its row. Most facts are written once, when a node is first met: that moment is
        # kept for the node, and is 0 in the cell. Within a second the row that is read later
        # counts: files are sorted by time.
        self._value_of_cell = np.zeros((len(nodes), 0), np.int32)
        self._second_of_cell = np.zeros((len(nodes), 0), np.uint32)
        self._first_ns = np.zeros(len(nodes), np.int64)

    def add(self, batch: pa.RecordBatch) -> None:
        columns = {name: batch.column(name) for name in batch.schema.names}
        time_ns, value = columns["time"].to_numpy(), indices(columns["value"])
        self._number_values(columns["value"].dictionary)
        starts = None if self._is_wanted else _starts_of_runs(columns, time_ns)
        if starts is None or columns["value"].null_count:
            self._put_rows(columns, time_ns, self._text_numbers[value])
            return
        self._run_facts.turn_to(columns["kind"], columns["name"])
        nodes = self._joined_nodes.of(columns["cluster"], columns["node"], starts).tolist()
        bounds = pairwise([*starts.tolist(), len(time_ns)])
        for node, (start, end) in zip(nodes, bounds, strict=True):
            if node >= 0:
                last = end
                if time_ns[end - 1] > self._moments[node]:
                    within = np.searchsorted(time_ns[start:end], self._moments[node], side="right")
                    last = start + int(within)
                self._put_run(node, value[start:last], time_ns[start:last], start)

    def _put_run(self, node: int, value: NDArray[Any], time_ns: Numbers, start: int) -> None:
        """Rows of one node, in order. Most nodes tell all of their facts once, at one moment."""
        if not len(value):
            return
        fact = self._run_facts.of(start, start + len(value))
        self._grow(len(self._facts.numbers))
        row, is_fresh = self._value_of_cell[node], not self._first_ns[node]
        if is_fresh:
            self._first_ns[node] = time_ns[0]
        is_at_once = time_ns[0] == time_ns[-1] == self._first_ns[node]
        if is_at_once and (is_fresh or not row[fact].any()):
            row[fact] = self._text_numbers.take(value, mode="wrap")
            return
        facts = np.arange(fact.start, fact.stop) if isinstance(fact, slice) else fact
        self._put(np.full(len(value), node), facts, self._text_numbers[value], time_ns)

    def _put_rows(
        self, columns: dict[str, pa.Array], time_ns: Numbers, value: NDArray[np.int32]
    ) -> None:
        """Rows of any nodes in any order."""
        node = self._joined_nodes.of(columns["cluster"], columns["node"])
        fact = self._joined_facts.of(columns["kind"], columns["name"])
        self._grow(len(self._facts.numbers))
        rows = np.flatnonzero((node >= 0) & (fact >= 0) & (time_ns <= self._moments[node]))
        rows = rows[np.argsort(time_ns[rows], kind="stable")]
        self._put(node[rows], fact[rows], value[rows], time_ns[rows])

    def matrix(self) -> FactMatrix:
        """Values of a fact are renumbered, in place, those of one fact side by side."""
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

    def _put(
        self, node: Numbers, fact: Numbers, value: NDArray[np.int32], time_ns: Numbers
    ) -> None:
        """What is newer than what the cell holds; of rows for one cell the last stays."""
        values, seconds = self._value_of_cell.reshape(-1), self._second_of_cell.reshape(-1)
        cell = node * self._value_of_cell.shape[1] + fact
        if self._is_first(node, time_ns) and value.all() and not values[cell].any():
            values[cell] = value
            return
        second, known_s = _seconds(time_ns), seconds[cell]
        is_empty = (values[cell] == 0) & (known_s == 0)
        is_newer = is_empty | (
            second >= np.where(known_s == 0, _seconds(self._first_ns[node]), known_s)
        )
        values[cell[is_newer]] = value[is_newer]
        seconds[cell[is_newer]] = second[is_newer]

    def _is_first(self, node: Numbers, time_ns: Numbers) -> bool:
        """Whether all rows were reported when their node was first met."""
        known = self._first_ns[node]
        if not known.all():
            new = np.flatnonzero(known == 0)[::-1]
            # The last one assigned stays: the first row of each node.
            self._first_ns[node[new]] = time_ns[new]
            known = self._first_ns[node]
        return bool((time_ns == known).all())

    def _grow(self, facts: int) -> None:
        """To at least this many facts; memory that is never written to costs nothing."""
        nodes, room = self._value_of_cell.shape
        if facts > room:
            size = nodes, max(facts + facts // 4, _LEAST_FACTS)
            values, seconds = np.zeros(size, np.int32), np.zeros(size, np.uint32)
            values[:, :room], seconds[:, :room] = self._value_of_cell, self._second_of_cell
            self._value_of_cell, self._second_of_cell = values, seconds

    def _number_values(self, texts: pa.Array) -> None:
        if self._texts is None or not is_same(texts, self._texts):
            self._texts = texts
            # A place more, for rows without a value: the index -1 is the last.
            numbers = np.append(self._values.of(texts.to_pylist()), 0)
            self._text_numbers = numbers.astype(np.int32)

    def _number_facts(self, keys: list[Fact]) -> Numbers:
        """-1 for one that was not asked for."""
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


class _RunFacts:
    """The facts that the rows of a node tell. The next node of a file mostly tells the same, in the
    same order: that is compared, which is cheaper than numbering it again.
    """

    def __init__(self, joined: TextPairNumbers) -> None:
        self._joined = joined
        self._columns: tuple[pa.DictionaryArray, ...] = ()
        self._codes: tuple[NDArray[Any], ...] = ()
        self._known: tuple[tuple[NDArray[Any], ...], Numbers | slice] | None = None

    def turn_to(self, *columns: pa.DictionaryArray) -> None:
        """Kinds and names of the rows that `of` is asked about from now on."""
        if not self._columns or not all(
            is_same(one.dictionary, other.dictionary)
            for one, other in zip(columns, self._columns, strict=True)
        ):
            self._known = None
        self._columns, self._codes = columns, tuple(map(indices, columns))

    def of(self, start: int, end: int) -> Numbers | slice:
        """A slice where they are numbered one after the other, as those met first are."""
        codes = tuple(each[start:end] for each in self._codes)
        if self._known is not None and all(map(np.array_equal, codes, self._known[0])):
            return self._known[1]
        kind, name = self._columns
        found = self._joined.of(kind, name, slice(start, end))
        is_straight = bool((np.diff(found) == 1).all())
        facts = slice(int(found[0]), int(found[-1]) + 1) if is_straight else found
        self._known = codes, facts
        return facts


def _starts_of_runs(columns: dict[str, pa.Array], time_ns: Numbers) -> Numbers | None:
    """Where the rows of each node begin; None if a node's rows are not in order, or few: files are
    sorted by node and time, but for those of other writers.
    """
    is_new = np.zeros(max(len(time_ns) - 1, 0), np.bool_)
    for name in ("cluster", "node"):
        if len(columns[name].dictionary) > 1:
            code = indices(columns[name])
            is_new |= code[1:] != code[:-1]
    starts = np.append(0, np.flatnonzero(is_new) + 1)
    is_older = time_ns[1:] < time_ns[:-1]
    if len(starts) * _LEAST_RUN > len(time_ns) or (is_older & ~is_new).any():
        return None
    return starts
