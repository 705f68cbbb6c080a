"""The cores that an excerpt is not about, made small: samples as one row per stack and second,
counters around the event only.

A folded row stands for as many samples as its weight says, at the time of the first of them.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from necroscope.errors import NecroscopeError
from necroscope.model.units import NS_PER_S
from necroscope.segment.window import Window, rows_at, times_of
from necroscope.stacks.samples import SampleTables
from necroscope.store.merged_samples import merge_samples
from necroscope.store.query import Store

_BY_CORE: Final = frozenset(
    {"cores", "softirqs", "softirq_delay", "runqueue", "softnet", "interrupts"}
)
# Whole seconds, so that none of them is folded in two.
_PIECE_NS: Final = 20 * NS_PER_S
_SECOND: Final = "second"
_KEYS: Final = [_SECOND, "cpu", "comm", "cgroup", "stack"]


class TooManySamples(NecroscopeError):  # noqa: N818 - the name says the fact
    """More are left than a caller can use, known before all of them are read."""


@dataclass(frozen=True, slots=True)
class FoldedCores:
    """`full` cores stay as they are. Of the others only what lies in a window is kept, None being
    all time.
    """

    full: frozenset[int]
    samples_within: Window = None
    counters_within: Window = None
    keeps_histograms: bool = True
    most_samples: int | None = None

    def samples(self, store: Store, from_ns: int, to_ns: int) -> SampleTables:
        """Piece by piece: minutes of very many busy cores take a gigabyte before they are folded.
        May raise TooManySamples.
        """
        parts: list[SampleTables] = []
        start_ns = from_ns
        while start_ns < to_ns:
            end_ns = min(start_ns // _PIECE_NS * _PIECE_NS + _PIECE_NS, to_ns)
            found = store.samples(start_ns, end_ns)
            parts.append(SampleTables(self._fold(found.samples), found.stacks, found.frames))
            start_ns = end_ns
            count = sum(part.samples.num_rows for part in parts)
            if self.most_samples is not None and count > self.most_samples:
                raise TooManySamples(
                    f"more than {self.most_samples:,} samples are left of other cores and our own"
                )
        return merge_samples(parts)

    def counters(self, table: str, rows: pa.Table) -> pa.Table:
        if table not in _BY_CORE:
            return rows
        is_full = self._is_full(rows)
        is_kept = is_full | _is_within(rows, self.counters_within)
        rows = rows if is_kept.all() else rows_at(rows, np.flatnonzero(is_kept))
        if table != "softirq_delay" or self.keeps_histograms:
            return rows
        return _without_histograms(rows, is_full[is_kept])

    def _fold(self, samples: pa.Table) -> pa.Table:
        is_full = self._is_full(samples)
        others = rows_at(
            samples, np.flatnonzero(~is_full & _is_within(samples, self.samples_within))
        )
        return pa.concat_tables([rows_at(samples, np.flatnonzero(is_full)), _fold(others)]).sort_by(
            "time"
        )

    def _is_full(self, rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.isin(rows.column("cpu").to_numpy(), list(self.full))


def _is_within(rows: pa.Table, window: Window) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    times = times_of(rows)
    return (
        np.ones(len(times), dtype=bool)
        if window is None
        else (times >= window[0]) & (times < window[1])
    )


def _fold(samples: pa.Table) -> pa.Table:
    second = pa.array(times_of(samples) // NS_PER_S)
    grouped = (
        samples.unify_dictionaries()
        .append_column(_SECOND, second)
        .group_by(_KEYS, use_threads=False)
    )
    summed = grouped.aggregate(
        [("time", "min"), ("pid", "first"), ("tid", "first"), ("weight", "sum")]
    )
    names = {"time_min": "time", "pid_first": "pid", "tid_first": "tid", "weight_sum": "weight"}
    renamed = summed.rename_columns([names.get(name, name) for name in summed.column_names])
    return renamed.select(samples.column_names).cast(samples.schema)


def _without_histograms(
    rows: pa.Table, is_full: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> pa.Table:
    place = rows.schema.get_field_index("histogram")
    kept = rows.column(place).to_pylist()
    column = pa.array(
        [values if full else [] for values, full in zip(kept, is_full, strict=True)],
        rows.schema.field(place).type,
    )
    return rows.set_column(place, rows.schema.field(place), column)
