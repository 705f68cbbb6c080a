"""How long a kernel section took each time it came, and how many objects there were: which
population its length grows with.

A *turn* is a stretch of samples in the section on one core, with no hole longer than some beats of
the sampling clock; its length is CPU time. Turns are looked for around the incident and in windows
spread over the recording, so that a growth of days is seen as well as one of seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from necroscope.analysis.case import Case
from necroscope.analysis.columns import Floats, Numbers
from necroscope.analysis.functions import Functions
from necroscope.analysis.populations import Population
from necroscope.model.span import Span, merge
from necroscope.model.units import NS_PER_S

# How much is read: what bounds memory.
_AROUND_NS: Final = 120 * NS_PER_S
_WINDOW_NS: Final = 30 * NS_PER_S
_WINDOWS: Final = 12
# On a large node of the incident's core alone.
_FEW_CORES: Final = 8
# A hole of this many beats ends a turn, and what is shorter than some is measured too roughly.
_HOLE_BEATS: Final = 3.2
_LEAST_BEATS: Final = 2
_MOST_TURN_S: Final = 20.0
# What a relation needs: turns, and objects that became this much more.
_LEAST_TURNS: Final = 6
_LEAST_RANGE: Final = 1.25
_LEAST_COUNT: Final = 500
# An object that takes longer than this is not visited, it is worked on.
_MOST_PER_OBJECT_S: Final = 1e-3
_BINS: Final = 8
_LEAST_BINS: Final = 4
# Of a population that the functions name less is enough than of one that only grew meanwhile.
SURE: Final = 0.92
SURE_IF_NAMED: Final = 0.6
_AS_SURE: Final = 0.06
_EXPONENTS: Final = (0.4, 3.5)
# The longer half of the turns is this much longer than the shorter one: one that was cut short,
# when there happened to be few objects, is not a relation.
_LONGER: Final = 1.1


@dataclass(frozen=True, slots=True)
class SectionTurns:
    """When each was, and how long it took on the CPU."""

    time_ns: Numbers
    seconds: Floats

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True, slots=True)
class WalkRelation:
    """`seconds` of a turn grow with `count` to the power of `exponent`; `sureness` is the
    correlation of both, over `turns`.
    """

    population: Population
    sureness: float
    exponent: float
    turns: int


def spans_of_history(case: Case) -> list[Span]:
    """Around the incident, and a window here and there back to the beginning of the recording."""
    first_ns, last_ns = case.node.span
    start_ns = case.node.recording.info().from_ns or first_ns
    middle = case.times.spans[0][0]
    own = Span(max(first_ns, middle - _AROUND_NS), min(last_ns, middle + _AROUND_NS))
    before_ns = own[0] - start_ns
    if before_ns <= _WINDOWS * _WINDOW_NS:
        return merge([Span(start_ns, own[0]), own]) if before_ns > 0 else [own]
    step_ns = before_ns // _WINDOWS
    windows = [
        Span(start_ns + i * step_ns, start_ns + i * step_ns + _WINDOW_NS) for i in range(_WINDOWS)
    ]
    return merge([*windows, own])


def turns_of(case: Case, group: Functions, comm: str | None) -> SectionTurns:
    """Of one program, or of anyone; those cut by the edge of a window are left out. A section that
    comes again in another incident of the core is read once.
    """
    key = group, comm, case.core
    if key not in case.node.turns:
        found = [_turns_in(case, span, group, comm) for span in spans_of_history(case)]
        case.node.turns[key] = SectionTurns(
            np.concatenate([one.time_ns for one in found]),
            np.concatenate([one.seconds for one in found]),
        )
    turns: SectionTurns = case.node.turns[key]
    return turns


def _turns_in(case: Case, span: Span, group: Functions, comm: str | None) -> SectionTurns:
    is_small = case.core is None or case.node.cores <= _FEW_CORES
    stacks = case.node.stacks(span, None if is_small else [case.core or 0])
    own = (stacks if comm is None else stacks.of_task(comm)).of(group).samples
    if not len(own.time_ns):
        return SectionTurns(np.zeros(0, dtype=np.int64), np.zeros(0))
    period_s = case.node.period_s
    order = np.lexsort((own.time_ns, own.cpu))
    time_ns, cpu, weight = own.time_ns[order], own.cpu[order], own.weight[order]
    apart = np.diff(time_ns) > _HOLE_BEATS * period_s * NS_PER_S
    number = np.concatenate([[0], np.cumsum(apart | (np.diff(cpu) != 0))])
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    ends = np.append(starts[1:], len(time_ns)) - 1
    beats = np.bincount(number, weights=weight)
    edge_ns = round(_HOLE_BEATS * period_s * NS_PER_S)
    is_whole = (
        (time_ns[starts] - span[0] > edge_ns)
        & (span[1] - time_ns[ends] > edge_ns)
        & (beats >= _LEAST_BEATS)
        & (beats * period_s <= _MOST_TURN_S)
    )
    middle = (time_ns[starts] + time_ns[ends]) // 2
    return SectionTurns(middle[is_whole], (beats * period_s)[is_whole])


def relations(turns: SectionTurns, populations: Mapping[str, Population]) -> list[WalkRelation]:
    """Populations that the length of turns grows with, the surest first; with few turns none."""
    if len(turns) < _LEAST_TURNS or not _vary(turns.seconds):
        return []
    found = [one for each in populations.values() if (one := _relation(turns, each)) is not None]
    return sorted(found, key=lambda one: -one.sureness)


def _vary(seconds: Floats) -> bool:
    shorter, longer = np.percentile(seconds, (25, 75))
    return bool(longer >= _LONGER * shorter)


def _relation(turns: SectionTurns, population: Population) -> WalkRelation | None:
    counts = population.at(turns.time_ns)
    is_much = counts.max() >= max(_LEAST_COUNT, float(turns.seconds.max()) / _MOST_PER_OBJECT_S)
    if not is_much or counts.max() < _LEAST_RANGE * max(1.0, float(counts.min())):
        return None
    counts = np.maximum(counts, 1.0)
    bins = min(_BINS, len(turns) // 2)
    parts = [rows for rows in np.array_split(np.argsort(counts, kind="stable"), bins) if len(rows)]
    if len(parts) < min(_LEAST_BINS, bins):
        return None
    x = np.log([float(np.mean(counts[rows])) for rows in parts])
    y = np.log([float(np.mean(turns.seconds[rows])) for rows in parts])
    if x.std() <= 0 or y.std() <= 0:
        return None
    sureness = float(np.corrcoef(x, y)[0, 1])
    exponent = float(np.polyfit(x, y, 1)[0])
    is_related = sureness >= SURE_IF_NAMED and _EXPONENTS[0] <= exponent <= _EXPONENTS[1]
    return WalkRelation(population, sureness, exponent, len(turns)) if is_related else None


def as_sure(found: Sequence[WalkRelation]) -> list[WalkRelation]:
    """The first and those that cannot be separated from it."""
    return [one for one in found if one.sureness >= found[0].sureness - _AS_SURE]
