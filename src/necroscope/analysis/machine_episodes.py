"""Episodes of the whole machine: work that stalls for memory or waits for input and output, cgroups without quota left."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from necroscope.analysis.columns import Columns, Floats, runs
from necroscope.analysis.core_episodes import usual
from necroscope.analysis.episodes import Episode, Kind
from necroscope.analysis.node import Node
from necroscope.model.units import NS_PER_S

_MEMORY: Final = 0.1
_MEMORY_STRONG: Final = 0.4
_IO: Final = 0.5
_IO_SOME: Final = 0.3
_STALLS_PER_S: Final = {"allocstall": 50.0, "compact_stall": 10.0, "pgscan_kswapd": 20_000.0, "pgscan_direct": 20_000.0}
_LASTS_S: Final = 1.5
_IO_LASTS_S: Final = 4.0
_THROTTLED: Final = 0.1


def machine_episodes(node: Node) -> Iterator[Episode]:
    pressure = node.columns("pressure")
    yield from _pressed(pressure, "memory", "some_ns", Kind.MEMORY_STALLED, _MEMORY, _LASTS_S)
    yield from _pressed(pressure, "io", "full_ns", Kind.IO_BLOCKED, _IO, _IO_LASTS_S)
    # Beside busy cores not all work stalls, however many tasks stand still: then the level is half or less, and flat.
    yield from _pressed(pressure, "io", "some_ns", Kind.IO_BLOCKED, _IO_SOME, 2 * _IO_LASTS_S)
    yield from _memory_events(node.columns("memory"))
    yield from _throttled(node.columns("cgroups"))


def _pressed(rows: Columns, resource: str, column: str, kind: Kind, least: float, lasts_s: float) -> Iterator[Episode]:
    rows = rows.at(rows["resource"] == resource) if len(rows) else rows
    if not len(rows):
        return
    share: Floats = np.nan_to_num(rows[column] / rows["elapsed_ns"])
    common = usual(share, rows["time"])
    for first, end in runs((share >= least) & (share >= common + least), _breaks(rows)):
        seconds = float(rows["elapsed_ns"][first:end].sum()) / NS_PER_S
        if seconds < lasts_s:
            continue
        level = float(share[first:end].mean())
        is_strong = kind is Kind.MEMORY_STALLED and level >= _MEMORY_STRONG and seconds >= 2 * lasts_s
        who = "all work" if column == "full_ns" else "some work"
        text = f"{who} stalled for {resource} {level:.0%} of {seconds:.0f} s (usual: {common:.0%})"
        yield Episode(kind, None, None, *_span(rows, first, end), level, text, "pressure", is_strong)


def _memory_events(rows: Columns) -> Iterator[Episode]:
    if not len(rows):
        return
    for name, least in _STALLS_PER_S.items():
        per_s: Floats = np.nan_to_num(rows[name] / rows["elapsed_ns"]) * NS_PER_S
        common = usual(per_s, rows["time"])
        for first, end in runs((per_s >= least) & (per_s >= 3 * common), _breaks(rows)):
            seconds = float(rows["elapsed_ns"][first:end].sum()) / NS_PER_S
            rate = float(per_s[first:end].mean())
            text = f"{name} rose by {rate:,.0f} a second for {seconds:.0f} s (usual: {common:,.0f})"
            span = _span(rows, first, end)
            yield Episode(Kind.MEMORY_STALLED, None, None, *span, 0.3, text, "memory", is_strong=False, subject=name)


def _throttled(rows: Columns) -> Iterator[Episode]:
    """Cgroups that had used up their quota; the rows come every 10 s and tell of the time since the row before of that path."""
    if not len(rows):
        return
    rows = rows.at(np.nan_to_num(rows["throttled_ns"]) > 0)
    for path in dict.fromkeys(rows["path"].tolist()):
        own = rows.at(rows["path"] == path)
        before_ns = np.append(own["time"][0] - 10 * NS_PER_S, own["time"][:-1])
        elapsed_ns = np.clip(own["time"] - before_ns, NS_PER_S, 11 * NS_PER_S)
        share = own["throttled_ns"] / elapsed_ns
        for first, end in runs(share >= _THROTTLED, np.append(True, np.diff(own["time"]) > 15 * NS_PER_S)):
            span = int(own["time"][first] - elapsed_ns[first]), int(own["time"][end - 1])
            level = float(share[first:end].mean())
            times = int(own["nr_throttled"][first:end].sum())
            text = f"{path} had used up its CPU quota {times} times, {level:.1f} s of its threads' time a second were throttled"
            yield Episode(Kind.THROTTLED, None, None, *span, level, text, "cgroups", is_strong=False, subject=path)


def _breaks(rows: Columns) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.append(True, np.diff(rows["time"]) > 5 * NS_PER_S)


def _span(rows: Columns, first: int, end: int) -> tuple[int, int]:
    return int(rows["time"][first] - rows["elapsed_ns"][first]), int(rows["time"][end - 1])
