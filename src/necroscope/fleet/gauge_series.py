"""What the numbers of each node were at any moment, out of the lake's `gauges`: by boot, in a
straight line between two rows.

    rows of n0      boots of n0        `dead` of n0      a line between rows of one boot,
    uptime  dead    0: from day 0      |  .-'            the last value for a day after the last,
    1 d     9       1: from day 6      |.'     (gap) .   nothing beyond that or before the first
    5 d     45                         +--------------
    2 d     18

Rows are sent when a number changed by some percent, and daily: where they are further apart, the
node was silent, and nothing is known in between. Rows that were stored twice do no harm.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

from necroscope.fleet.coded_texts import Numbers, TextPairNumbers, indices
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_tables import DAY_NS, NodeKey
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

Floats = NDArray[np.float64]
UPTIME: Final = "uptime_s"
DAY_S: Final = 86_400.0
# Rows come daily, and a push may be late.
_SILENT_S: Final = 1.5 * DAY_S
# A value is known for this long before the span.
_BEFORE_NS: Final = 2 * DAY_NS
# The clock is set now and then; a boot moves its start by more.
_SAME_BOOT_S: Final = 300.0
_TEXTS: Final = ("cluster", "node", "name")


@dataclass(frozen=True, slots=True)
class GaugeSeries:
    """Boots are numbered over all nodes, in order of node and time. `line[name]` holds the places
    of a number's rows on one line, boot after boot, and its values.
    """

    keys: tuple[NodeKey, ...]
    names: tuple[str, ...]
    start_ns: int
    width_s: float
    node_of_boot: Numbers
    booted_s: Floats
    first_s: Floats
    last_s: Floats
    line: Mapping[str, tuple[Floats, Floats]]

    def seconds(self, time_ns: Any) -> Floats:
        return np.asarray((np.asarray(time_ns, np.int64) - self.start_ns) / NS_PER_S)

    def boot_at(self, node: Numbers, time_s: Floats) -> Numbers:
        """The boot that a node was in at a moment; -1 before the first that is known of it."""
        return _boot_at(self.node_of_boot, self.booted_s, self.width_s, node, time_s)

    def at(self, name: str, boot: Numbers, time_s: Floats) -> Floats:
        """A number's size at moments of boots; NaN where it is not known."""
        if name == UPTIME:
            return time_s - self.booted_s[boot]
        places, values = self.line[name]
        wanted = boot * self.width_s + time_s
        right = np.searchsorted(places, wanted, side="right")
        left = np.maximum(right - 1, 0)
        beside = np.minimum(right, len(places) - 1)
        since_s, until_s = wanted - places[left], places[beside] - wanted
        first_s = boot * self.width_s
        is_known = (right > 0) & (places[left] >= first_s) & (since_s <= _SILENT_S)
        is_between = (right < len(places)) & (places[beside] < first_s + self.width_s)
        is_line = is_between & (since_s + until_s <= _SILENT_S) & (since_s + until_s > 0)
        slope = np.where(
            is_line,
            (values[beside] - values[left]) / np.where(is_line, since_s + until_s, 1.0),
            0.0,
        )
        return np.where(is_known, values[left] + slope * since_s, np.nan)


def read_gauge_series(
    lake: Lake, keys: Sequence[NodeKey], span: Span, clusters: Iterable[str] | None = None
) -> GaugeSeries | None:
    """Of these nodes; None where no number of them is known."""
    wanted = Span(max(0, span.from_ns - _BEFORE_NS), span.to_ns)
    rows = _Rows(keys, wanted)
    stored = lake.dataset("gauges", *wanted, clusters)
    if stored.files:
        form = ds.ParquetFileFormat(dictionary_columns=list(_TEXTS))
        coded = ds.dataset(stored.files, filesystem=stored.filesystem, format=form)
        for batch in coded.to_batches(columns=[*_TEXTS, "time", "value"]):
            rows.add(batch)
    return rows.series()


class _Rows:
    def __init__(self, keys: Sequence[NodeKey], span: Span) -> None:
        self._keys, self._span = tuple(keys), span
        self._place = {key: number for number, key in enumerate(keys)}
        self._nodes = TextPairNumbers(self._number_nodes, are_all_there=True)
        self._names: dict[str, int] = {}
        self._parts: list[tuple[Numbers, Numbers, Floats, Floats]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        columns = {name: batch.column(name) for name in batch.schema.names}
        node = self._nodes.of(columns["cluster"], columns["node"])
        names = columns["name"].dictionary.to_pylist()
        number = np.array(
            [self._names.setdefault(name, len(self._names)) for name in names], np.int64
        )
        time_ns, value = columns["time"].to_numpy(), columns["value"].to_numpy()
        chosen = np.flatnonzero(
            (node >= 0)
            & (time_ns >= self._span.from_ns)
            & (time_ns < self._span.to_ns)
            & np.isfinite(value)
        )
        time_s = (time_ns[chosen] - self._span.from_ns) / NS_PER_S
        self._parts.append(
            (node[chosen], number[indices(columns["name"])[chosen]], time_s, value[chosen])
        )

    def series(self) -> GaugeSeries | None:
        if not any(len(part[0]) for part in self._parts):
            return None
        node, name, time_s, value = (
            np.concatenate([part[column] for part in self._parts]) for column in range(4)
        )
        is_uptime = name == self._names.get(UPTIME, -1)
        width_s = (self._span.to_ns - self._span.from_ns) / NS_PER_S + DAY_S
        node_of_boot, booted_s = _boots(
            node, node[is_uptime], time_s[is_uptime], value[is_uptime], width_s
        )
        boot = _boot_at(node_of_boot, booted_s, width_s, node, time_s)
        first_s, last_s = np.full(len(booted_s), np.inf), np.full(len(booted_s), -np.inf)
        np.minimum.at(first_s, boot, time_s)
        np.maximum.at(last_s, boot, time_s)
        line = {}
        for text, number in self._names.items():
            own = np.flatnonzero(name == number)
            if text != UPTIME and len(own):
                places = boot[own] * width_s + time_s[own]
                order = np.argsort(places, kind="stable")
                line[text] = places[order], value[own[order]]
        return GaugeSeries(
            keys=self._keys,
            names=(*([UPTIME] if is_uptime.any() else []), *sorted(line)),
            start_ns=self._span.from_ns,
            width_s=width_s,
            node_of_boot=node_of_boot,
            booted_s=booted_s,
            first_s=first_s,
            last_s=last_s,
            line=line,
        )

    def _number_nodes(self, keys: list[NodeKey]) -> Numbers:
        return np.array([self._place.get(key, -1) for key in keys], np.int64)


def _boots(
    nodes: Numbers, node: Numbers, time_s: Floats, uptime_s: Floats, width_s: float
) -> tuple[Numbers, Floats]:
    """The node of each boot, and when it began, as its rows of uptime tell. What comes before the
    first row of a node is a boot of its own, whose start is not known (NaN).
    """
    order = np.argsort(node * width_s + time_s, kind="stable")
    node, began_s = node[order], (time_s - uptime_s)[order]
    is_new = np.ones(len(node), np.bool_)
    is_new[1:] = (node[1:] != node[:-1]) | (np.diff(began_s) > _SAME_BOOT_S)
    node, began_s = node[is_new], began_s[is_new]
    is_known_from_start = np.isin(np.unique(nodes), node[began_s <= 0])
    unknown = np.unique(nodes)[~is_known_from_start]
    node = np.concatenate([node, unknown])
    began_s = np.concatenate([began_s, np.full(len(unknown), np.nan)])
    order = np.argsort(node * width_s + _from(began_s), kind="stable")
    return node[order], began_s[order]


def _boot_at(
    node_of_boot: Numbers, booted_s: Floats, width_s: float, node: Numbers, time_s: Floats
) -> Numbers:
    """-1 before the first boot that is known of the node."""
    starts = node_of_boot * width_s + _from(booted_s)
    boot = np.searchsorted(starts, node * width_s + time_s, side="right") - 1
    is_own = (boot >= 0) & (node_of_boot[np.maximum(boot, 0)] == node)
    return np.where(is_own, boot, -1)


def _from(booted_s: Floats) -> Floats:
    """Where a boot begins on the line: nothing lies before the span."""
    return np.maximum(np.nan_to_num(booted_s, nan=0.0), 0.0)
