"""Samples of a window: as tables, as arrays, and the time that one of them stands for."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from necroscope.model.units import NS_PER_S
from necroscope.stacks.tree import Flags, Numbers

# What a null becomes: an id that nothing has, and that is neither LOST nor a root.
_NOTHING: Final = -3
# Of a core that was sampled once only: the recorder's default rate.
_DEFAULT_PERIOD_NS: Final = NS_PER_S / 97
# Closer together are two events at once, not two beats of the sampling clock.
_TOO_CLOSE_NS: Final = 10_000


@dataclass(frozen=True, slots=True)
class SampleTables:
    """Rows of `samples`, `stacks` and `frames`: of one segment, in which they refer to each other
    by id, or of a merged window.

    There a sample's `stack` is a row number of `stacks`, a stack's `frame` one of `frames`; stack
    -1 was lost in a gap.
    """

    samples: pa.Table
    stacks: pa.Table
    frames: pa.Table


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples as arrays; `comm` and `cgroup` are places in `comms` and `cgroups`, and what is not
    known is -1.
    """

    time_ns: Numbers
    cpu: Numbers
    pid: Numbers
    tid: Numbers
    stack: Numbers
    weight: Numbers
    comm: Numbers
    cgroup: Numbers
    comms: list[str]
    cgroups: list[str]

    def at(self, rows: Flags | Numbers) -> Self:
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})


_COLUMNS: Final = ("time_ns", "cpu", "pid", "tid", "stack", "weight", "comm", "cgroup")


def samples_of(rows: pa.Table) -> Samples:
    time_ns, cpu, pid, tid, stack, weight = (
        numbers(rows, name, -1) for name in ("time", "cpu", "pid", "tid", "stack", "weight")
    )
    comm, comms = codes(rows.column("comm"))
    cgroup, cgroups = codes(rows.column("cgroup"))
    return Samples(
        time_ns, cpu, pid, tid, stack, weight, comm, cgroup, comms.to_pylist(), cgroups.to_pylist()
    )


def stored_period_ns(sampling: pa.Table, from_ns: int, to_ns: int) -> float | None:
    """What one sample stands for in most of a stretch, by rows of `sampling` from before it on;
    None in recordings that do not say it, whose samples tell it themselves.
    """
    starts = np.clip(numbers(sampling, "time"), from_ns, to_ns)
    lasts = np.diff(np.append(starts, to_ns))
    if not lasts.any():
        return None
    return float(numbers(sampling, "period_ns")[int(np.argmax(lasts))])


def sample_period_ns(time_ns: Numbers, cpu: Numbers) -> float:
    """What one sample stands for: the usual small distance between two of one core, as an idle core
    leaves holes.
    """
    order = np.lexsort((time_ns, cpu))
    apart = np.diff(time_ns[order])[np.diff(cpu[order]) == 0]
    apart = apart[apart > _TOO_CLOSE_NS]
    return float(np.percentile(apart, 25)) if len(apart) else _DEFAULT_PERIOD_NS


def numbers(rows: pa.Table, column: str, missing: int = _NOTHING) -> Numbers:
    """A column of numbers; a null becomes `missing`."""
    return narrow_numbers(rows, column, missing).astype(np.int64, copy=False)


def narrow_numbers(
    rows: pa.Table, column: str, missing: int = _NOTHING
) -> NDArray[np.signedinteger[Any]]:
    """As stored, for columns of very many rows of which only some are looked at: to widen takes as
    long as to read.
    """
    values = rows.column(column)
    found: NDArray[np.signedinteger[Any]] = (
        values.fill_null(missing) if values.null_count else values
    ).to_numpy()
    return found


def as_array(numbers: NDArray[np.signedinteger[Any]]) -> pa.Array:
    """For Arrow, without a copy: its own way loads numpy.ma, which nothing here uses."""
    whole = np.ascontiguousarray(numbers)
    buffers = [None, pa.py_buffer(whole)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(whole.dtype), len(whole), buffers)


def codes(column: pa.ChunkedArray) -> tuple[Numbers, pa.Array]:
    """A number for each different value of a column, -1 for null, and the values by number."""
    if pa.types.is_string(column.type):
        return _codes_of_texts(column)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if column.num_chunks != 1:
        column = (
            column.unify_dictionaries().combine_chunks()
            if column.num_chunks
            else pa.array([], column.type)
        )
    else:
        column = column.chunk(0)
    # Where there are nulls these are floats, which hold an index exactly: fill_null would load all
    # of Arrow's functions, which takes as long as to load Arrow itself.
    places = column.indices.to_numpy(zero_copy_only=False)
    if column.indices.null_count:
        places = np.where(np.isnan(places), -1, places)
    found: Numbers = places.astype(np.int64)
    return found, column.dictionary


def _codes_of_texts(column: pa.ChunkedArray) -> tuple[Numbers, pa.Array]:
    """As the functions of a journal's frames come: dictionary_encode too loads all of Arrow's
    functions.
    """
    number_of: defaultdict[Any, int] = defaultdict(count().__next__)
    number_of[None] = -1
    texts = column.to_pylist()
    found: Numbers = np.fromiter(
        map(number_of.__getitem__, texts), dtype=np.int64, count=len(texts)
    )
    del number_of[None]
    return found, pa.array(list(number_of), column.type)


def flags_of(column: pa.ChunkedArray, is_wanted: Callable[[Any], bool]) -> Flags:
    """Of each value, decided once for each different one; null is never wanted."""
    numbers, values = codes(column)
    flags: Flags = np.array([*map(is_wanted, values.to_pylist()), False], dtype=np.bool_)[numbers]
    return flags
