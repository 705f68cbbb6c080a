"""Samples as numbers: times, cores and tasks as arrays, names by code."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from necroscope.analysis.call_tree import Numbers
from necroscope.analysis.functions import Flags
from necroscope.analysis.task_names import shown_name
from necroscope.model.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class SampleColumns:
    """Samples as numbers; names by code."""

    time: Numbers
    cpu: Numbers
    pid: Numbers
    tid: Numbers
    comm: Numbers
    cgroup: Numbers
    stack: Numbers
    weight: Numbers

    def at(self, rows: Flags | Numbers) -> "SampleColumns":
        return SampleColumns(*(getattr(self, name)[rows] for name in self.__slots__))


def period_of(time: Numbers, cpu: Numbers) -> float:
    """Seconds between two samples of a busy core: the usual small distance, as an idle core leaves holes."""
    order = np.lexsort((time, cpu))
    apart = np.diff(time[order])[np.diff(cpu[order]) == 0]
    apart = apart[apart > 10_000]
    return float(np.percentile(apart, 25)) / NS_PER_S if len(apart) else 1 / 97


def numbers(rows: pa.Table, name: str) -> Numbers:
    """A column of whole numbers; null is -1."""
    column = rows.column(name)
    values: Numbers = (column.fill_null(-1) if column.null_count else column).to_numpy().astype(np.int64)
    return values


def codes(rows: pa.Table, name: str) -> tuple[Numbers, list[str]]:
    """A column of names as codes, and the names as they are shown; the last one is that of code -1, which is null."""
    column = rows.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks() if column.num_chunks else pa.array([], column.type)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    found: Numbers = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found, [*(shown_name(str(text)) for text in column.dictionary.to_pylist()), "?"]
