"""Episodes of the whole machine: work that stalls for memory or waits for input and output, cgroups
without quota left.
"""

from collections.abc import Iterator
from math import ceil
from typing import Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays, Floats, runs
from necroscope.analysis.core_time import usual
from necroscope.analysis.episodes import Episode, EpisodeKind
from necroscope.analysis.node import Node
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S

_MEMORY: Final = 0.1
_MEMORY_STRONG: Final = 0.4
_IO: Final = 0.5
_IO_SOME: Final = 0.3
_STALLS_PER_S: Final = {
    "allocstall": 50.0,
    "compact_stall": 10.0,
    "pgscan_kswapd": 20_000.0,
    "pgscan_direct": 20_000.0,
}
_LASTS_S: Final = 1.5
_IO_LASTS_S: Final = 4.0
_THROTTLED: Final = 0.1
# The recorder reads the limits of this many cgroups at once, and the others in turn.
_READ_AT_ONCE: Final = 1_000
_READ_EVERY_NS: Final = round(TABLES["cgroups"].period_s * NS_PER_S)


def machine_episodes(node: Node) -> Iterator[Episode]:
    pressure = node.columns("pressure")
    yield from _pressure_episodes(
        pressure, "memory", "some_ns", EpisodeKind.MEMORY_STALLED, _MEMORY, _LASTS_S
    )
    yield from _pressure_episodes(
        pressure, "io", "full_ns", EpisodeKind.IO_BLOCKED, _IO, _IO_LASTS_S
    )
    # Beside busy cores not all work stalls, however many tasks stand still: then the level is half
    # or less, and flat.
    yield from _pressure_episodes(
        pressure, "io", "some_ns", EpisodeKind.IO_BLOCKED, _IO_SOME, 2 * _IO_LASTS_S
    )
    yield from _memory_events(node.columns("memory"))
    yield from throttled_episodes(node.columns("cgroups"))


def _pressure_episodes(
    rows: ColumnArrays, resource: str, column: str, kind: EpisodeKind, least: float, lasts_s: float
) -> Iterator[Episode]:
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
        is_strong = (
            kind is EpisodeKind.MEMORY_STALLED
            and level >= _MEMORY_STRONG
            and seconds >= 2 * lasts_s
        )
        who = "all work" if column == "full_ns" else "some work"
        words = (
            f"{who} stalled on {'I/O' if resource == 'io' else resource} {{level:.0%}} of"
            " {amount:.0f} s (usual: {reference:.0%})"
        )
        span = _span(rows, first, end)
        yield Episode(
            kind,
            None,
            None,
            *span,
            level,
            words,
            "pressure",
            is_strong,
            amount=seconds,
            reference=common,
        )


def _memory_events(rows: ColumnArrays) -> Iterator[Episode]:
    if not len(rows):
        return
    for name, least in _STALLS_PER_S.items():
        per_s: Floats = np.nan_to_num(rows[name] / rows["elapsed_ns"]) * NS_PER_S
        common = usual(per_s, rows["time"])
        for first, end in runs((per_s >= least) & (per_s >= 3 * common), _breaks(rows)):
            events = float((per_s[first:end] * rows["elapsed_ns"][first:end]).sum()) / NS_PER_S
            words = f"{name} rose by {{amount:,.0f}}; {common:,.0f} per second are usual"
            span = _span(rows, first, end)
            yield Episode(
                EpisodeKind.MEMORY_STALLED,
                None,
                None,
                *span,
                0.3,
                words,
                "memory",
                False,
                name,
                amount=events,
            )


def throttled_rows(rows: ColumnArrays) -> Iterator[tuple[str, ColumnArrays, Floats, int]]:
    """Of each cgroup that had used up its quota its rows, since when each of them tells, and how
    often it is read: a row covers the time since its path was read before, with or without a row.
    """
    if not len(rows):
        return
    turn_ns = _READ_EVERY_NS * max(1, ceil(np.nan_to_num(rows["visible"]).max() / _READ_AT_ONCE))
    rows = rows.at(np.nan_to_num(rows["throttled_ns"]) > 0)
    for path in dict.fromkeys(rows["path"].tolist()):
        own = rows.at(rows["path"] == path)
        before_ns = np.append(own["time"][0] - turn_ns, own["time"][:-1])
        yield path, own, np.clip(own["time"] - before_ns, NS_PER_S, turn_ns + NS_PER_S), turn_ns


def throttled_episodes(rows: ColumnArrays) -> Iterator[Episode]:
    """Cgroups that had used up their quota."""
    for path, own, elapsed_ns, turn_ns in throttled_rows(rows):
        share = own["throttled_ns"] / elapsed_ns
        for first, end in runs(
            share >= _THROTTLED, np.append(True, np.diff(own["time"]) > 1.5 * turn_ns)
        ):
            span = int(own["time"][first] - elapsed_ns[first]), int(own["time"][end - 1])
            level = float(share[first:end].mean())
            times = int(own["nr_throttled"][first:end].sum())
            words = (
                "{subject} had used up its CPU quota {times}; {level:.1f} s of its threads' time"
                " per second was throttled"
            )
            yield Episode(
                EpisodeKind.THROTTLED,
                None,
                None,
                *span,
                level,
                words,
                "cgroups",
                False,
                path,
                amount=times,
            )


def _breaks(rows: ColumnArrays) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.append(True, np.diff(rows["time"]) > 5 * NS_PER_S)


def _span(rows: ColumnArrays, first: int, end: int) -> Span:
    return Span(int(rows["time"][first] - rows["elapsed_ns"][first]), int(rows["time"][end - 1]))
