"""Columns of a table as numpy arrays: numbers with NaN for what is null, names as they are; sorted
by core, then time.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from necroscope.analysis.recording import Recording
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]


class _LazyArrays(Mapping[str, NDArray[Any]]):
    """Each is made when it is first asked for: a table has up to 60 columns, a rule reads few."""

    __slots__ = ("_made", "_make", "_names")

    def __init__(self, names: Collection[str], make: Callable[[str], NDArray[Any]]) -> None:
        self._names, self._make = names, make
        self._made: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        found = self._made.get(name)
        if found is None:
            if name not in self._names:
                raise KeyError(name)
            found = self._made[name] = self._make(name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, slots=True)
class ColumnArrays:
    """Rows of one table. `time` and `cpu` are whole numbers (cpu -1: none), names are objects, all
    else is float with NaN.
    """

    table: str
    values: Mapping[str, NDArray[Any]]

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.values[name]

    def __len__(self) -> int:
        return len(self.values["time"])

    def at(self, rows: Flags | Numbers | slice) -> "ColumnArrays":
        values = self.values
        return ColumnArrays(self.table, _LazyArrays(values, lambda name: values[name][rows]))

    def within(self, spans: Sequence[Span]) -> "ColumnArrays":
        """Rows whose time lies in one of these stretches, the end of each included: a row covers
        the time before it.
        """
        inside = np.zeros(len(self), dtype=bool)
        for from_ns, to_ns in spans:
            inside |= (self["time"] > from_ns) & (self["time"] <= to_ns)
        return self.at(inside)

    def of_core(self, cpu: int | None) -> "ColumnArrays":
        return self if cpu is None or "cpu" not in self.values else self.at(self["cpu"] == cpu)

    @property
    def elapsed_s(self) -> float:
        return float(np.nansum(self["elapsed_ns"])) / NS_PER_S

    def total(self, *names: str) -> float | None:
        """Sum of all these columns and rows, or None if no value is known."""
        values = [self[name] for name in names if name in self.values]
        known = [float(np.nansum(column)) for column in values if np.isfinite(column).any()]
        return sum(known) if known else None

    def per_second(self, *names: str) -> float | None:
        total = self.total(*names)
        return None if total is None or self.elapsed_s <= 0 else total / self.elapsed_s


def read(
    recording: Recording,
    table: str,
    span: Span,
    names: Sequence[str] | None = None,
    cpus: Collection[int] | None = None,
    by_core: bool = False,
) -> ColumnArrays:
    """Rows of a table in a stretch of time; without any the columns are there and empty."""
    wanted = (
        [column.name for column in TABLES[table].columns]
        if names is None
        else list(dict.fromkeys(["time", *names]))
    )
    rows = recording.rows(table, *span, cpus, wanted)
    present = frozenset(wanted) & set(rows.column_names)
    columns = ColumnArrays(table, _LazyArrays(present, lambda name: _array(rows, name)))
    if by_core and len(columns):
        return columns.at(np.lexsort((columns["time"], columns["cpu"])))
    return columns


def runs(flags: Flags, breaks: Flags) -> list[tuple[int, int]]:
    """First row and row after the last of each stretch of flagged rows; a row with `breaks` begins
    a new stretch.
    """
    if not flags.any():
        return []
    is_first = flags & (breaks | ~np.append(False, flags[:-1]))
    is_last = flags & np.append(breaks[1:] | ~flags[1:], True)
    return list(
        zip(np.flatnonzero(is_first).tolist(), (np.flatnonzero(is_last) + 1).tolist(), strict=True)
    )


def core_breaks(cpu: Numbers) -> Flags:
    """Rows where another core begins, of rows sorted by core."""
    return np.append(True, cpu[1:] != cpu[:-1]) if len(cpu) else np.zeros(0, dtype=bool)


def _array(rows: pa.Table, name: str) -> NDArray[Any]:
    column = rows.column(name)
    if pa.types.is_integer(column.type):
        if name in ("time", "cpu"):
            return np.asarray(column.fill_null(-1).to_numpy(), dtype=np.int64)
        # Moments in ns are too large for a float and lose some hundred ns, which is not a reason to
        # fail.
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    if pa.types.is_dictionary(column.type):
        whole = column.unify_dictionaries().combine_chunks()
        whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) and whole.num_chunks else whole
        if isinstance(whole, pa.ChunkedArray):
            return np.zeros(0, dtype=object)
        names = np.array([*whole.dictionary.to_pylist(), None], dtype=object)
        return np.asarray(names[whole.indices.fill_null(-1).to_numpy(zero_copy_only=False)])
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return values
