"""Episodes of bursts at a steady beat: a program that takes a core for a second or some, is gone,
and comes again on the dot.

One burst is nothing; only where several come at equal distances each of them is a weak episode. A
core's own figures do not tell them on a busy machine, so these are the only episodes that look at
samples, and of them only at time, core and name. An hour of a large node has tens of millions: they
are read a minute at a time, and of a program only the bins are kept that it filled.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from necroscope.analysis.columns import Numbers, runs
from necroscope.analysis.core_time import CoreShares
from necroscope.analysis.episodes import Episode, EpisodeKind
from necroscope.analysis.node import Node
from necroscope.analysis.periodicity import describe_period, period_of_starts
from necroscope.analysis.task_names import is_name, shown_name
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.stacks.samples import codes, sample_period_ns

_BIN_NS: Final = NS_PER_S // 4
# Of a core: in a burst, and at most on average in between.
_FULL: Final = 0.6
_SHORTEST_S: Final = 0.75
_LONGEST_S: Final = 15.0
# Between two bursts it must have been gone for longer than what joins episodes into one.
_REST_BINS: Final = 9
_ON_ONE_CORE: Final = 0.6
# How much is read at once: what bounds memory. Whole bins.
_SLICE_NS: Final = 60 * NS_PER_S
# A slice measures the period only roughly; of a bin that may be full this much is enough to keep
# it.
_ROUGHLY: Final = 0.9
# Counting in place is ten times quicker than by sorting, where there are not too many places.
_FEW_CELLS: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class _Slice:
    """Rows of program, place and count: of bins that a program filled, and of cores it was on; of
    programs that filled any.
    """

    in_bins: Numbers
    on_cores: Numbers
    busiest: int
    period_s: float


def burst_episodes(node: Node) -> Iterator[Episode]:
    first_ns, last_ns = node.span
    programs: dict[str, int] = {}
    starts = range(first_ns, last_ns, _SLICE_NS) if node.expected_rows("samples") else ()
    slices = [found for from_ns in starts if (found := _slice(node, from_ns, programs)) is not None]
    if not programs:
        return
    shares = node.core_shares
    period_s = max(slices, key=lambda one: one.busiest).period_s
    in_bins = _by_program([one.in_bins for one in slices], len(programs))
    on_cores = _by_program([one.on_cores for one in slices], len(programs))
    for comm, bins, cores in zip(programs, in_bins, on_cores, strict=True):
        if is_name(comm) and len(bins) and cores[:, 2].sum() * period_s >= 4 * _SHORTEST_S:
            yield from _of_program(comm, bins, cores, first_ns, period_s, shares)


def _slice(node: Node, from_ns: int, programs: dict[str, int]) -> _Slice | None:
    """`programs` are those known so far and their numbers; it grows."""
    rows = node.recording.rows(
        "samples", from_ns, min(from_ns + _SLICE_NS, node.span[1]), columns=("time", "cpu", "comm")
    )
    if not len(rows):
        return None
    time, cpu = (rows.column(name).to_numpy().astype(np.int64) for name in ("time", "cpu"))
    code_of, texts = codes(rows.column("comm"))
    names = [*map(shown_name, texts.to_pylist()), "?"]
    busiest = np.bincount(cpu)
    is_busiest = cpu == int(np.argmax(busiest))
    period_s = sample_period_ns(time[is_busiest], cpu[is_busiest]) / NS_PER_S
    least = max(1, int(_ROUGHLY * _FULL * _BIN_NS / (period_s * NS_PER_S)))
    # What has no name is code -1, and the last of the names.
    often = np.roll(np.bincount(code_of + 1, minlength=len(names)), -1)
    frequent = np.flatnonzero(often >= least)
    rank = np.full(len(names), -1)
    rank[frequent] = np.arange(len(frequent))
    own = np.flatnonzero(rank[code_of] >= 0)
    program = rank[code_of[own]]
    number = np.array(
        [programs.setdefault(names[code], len(programs)) for code in frequent.tolist()],
        dtype=np.int64,
    )
    in_bins = _count_pairs(program, (time[own] - node.span[0]) // _BIN_NS, number)
    on_cores = _count_pairs(program, cpu[own], number)
    return _Slice(in_bins[in_bins[:, 2] >= least], on_cores, int(busiest.max()), period_s)


def _count_pairs(program: Numbers, place: Numbers, number: Numbers) -> Numbers:
    """Rows of program, place and how often they come together, in that order; `number` is what a
    program is called in the end.
    """
    if not len(program):
        return np.zeros((0, 3), dtype=np.int64)
    first = int(place.min())
    width = int(place.max()) - first + 1
    cell = program * width + (place - first)
    if len(number) * width <= max(len(cell), _FEW_CELLS):
        counts = np.bincount(cell)
        found = np.flatnonzero(counts)
        counts = counts[found]
    else:
        found, counts = np.unique(cell, return_counts=True)
    return np.column_stack((number[found // width], found % width + first, counts))


def _by_program(parts: list[Numbers], programs: int) -> list[Numbers]:
    """The rows of each program, those of earlier slices first."""
    rows = np.concatenate(parts)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    return np.split(rows, np.searchsorted(rows[:, 0], np.arange(1, programs)))


def _of_program(
    comm: str, bins: Numbers, cores: Numbers, first_ns: int, period_s: float, shares: CoreShares
) -> Iterator[Episode]:
    """Its bursts, if it has nothing but bursts, on one core, at a steady beat."""
    on_cores = np.bincount(cores[:, 1], weights=cores[:, 2])
    core = int(np.argmax(on_cores))
    if on_cores[core] < _ON_ONE_CORE * on_cores.sum():
        return
    busy = np.bincount(bins[:, 1], weights=bins[:, 2]) * period_s * NS_PER_S / _BIN_NS
    found = list(_bursts(busy))
    period = period_of_starts([first_ns + first * _BIN_NS for first, _ in found])
    if period is None:
        return
    for first, end in found:
        span = Span(first_ns + first * _BIN_NS, first_ns + end * _BIN_NS)
        mode = _mode(shares, core, span)
        level, seconds = min(1.0, float(busy[first:end].mean())), (end - first) * _BIN_NS / NS_PER_S
        words = (
            f"{{subject}} took core {{cpu}} for about {{amount:.1f}} s, {describe_period(period)}"
        )
        yield Episode(
            EpisodeKind.BURST,
            core,
            mode,
            *span,
            level,
            words,
            "samples",
            False,
            comm,
            amount=seconds,
        )


def _bursts(busy: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Iterator[tuple[int, int]]:
    """First bin and the one after the last of each, with a rest before it; none if it works in
    between as well.
    """
    flags = busy >= _FULL
    last_end = -_REST_BINS
    for first, end in runs(flags, np.append(True, np.zeros(len(busy) - 1, dtype=bool))):
        is_rested = first - last_end >= _REST_BINS
        last_end = end
        if (
            is_rested
            and _SHORTEST_S <= float(busy[first:end].sum()) * _BIN_NS / NS_PER_S <= _LONGEST_S
        ):
            yield first, end


def _mode(shares: CoreShares, core: int, span: Span) -> str:
    """User or system, as the core was booked in most of that time."""
    if not len(shares.rows):
        return "user"
    time = shares.rows["time"]
    inside = (shares.rows["cpu"] == core) & (time > span[0]) & (time <= span[1] + NS_PER_S)
    return (
        "user"
        if shares.shares["user"][inside].sum() >= shares.shares["kernel"][inside].sum()
        else "system"
    )
