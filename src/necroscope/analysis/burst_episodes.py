"""Episodes of bursts at a steady beat: a program that takes a core for a second or some, is gone, and comes again on the dot.

One burst is nothing; only where several come at equal distances each of them is a weak episode. A core's own figures do not tell
them on a busy machine, so these are the only episodes that look at samples, and of them only at time, core and name.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from necroscope.analysis.columns import Numbers, runs
from necroscope.analysis.core_episodes import CoreShares, core_shares
from necroscope.analysis.episodes import Episode, Kind, Span
from necroscope.analysis.node import Node
from necroscope.analysis.periodicity import period_of_starts, told
from necroscope.analysis.stacks import period_of
from necroscope.model.units import NS_PER_S

_BIN_NS: Final = NS_PER_S // 4
# Of a core: in a burst, and at most on average in between.
_FULL: Final = 0.6
_SHORTEST_S: Final = 0.75
_LONGEST_S: Final = 15.0
# Between two bursts it must have been gone for longer than what joins episodes into one.
_REST_BINS: Final = 9
_ON_ONE_CORE: Final = 0.6
# More samples than this in a stretch (half an hour of 16 busy cores) are not looked through: time and memory stay bounded.
_MOST_ROWS: Final = 3_000_000


def burst_episodes(node: Node) -> Iterator[Episode]:
    first_ns, last_ns = node.span
    if not 0 < node.expected_rows("samples") <= _MOST_ROWS:
        return
    rows = node.recording.rows("samples", first_ns, last_ns, columns=("time", "cpu", "comm"))
    if not len(rows):
        return
    time, cpu = (rows.column(name).to_numpy().astype(np.int64) for name in ("time", "cpu"))
    codes, names = _codes(rows.column("comm"))
    shares, period_s = core_shares(node), period_of(time, cpu)
    place = (time - first_ns) // _BIN_NS
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    for code in np.flatnonzero(np.diff(ends, prepend=0) * period_s >= 4 * _SHORTEST_S).tolist():
        own = order[ends[code - 1] if code else 0 : ends[code]]
        yield from _of_program(names[code], place[own], cpu[own], first_ns, period_s, shares)


def _of_program(comm: str, place: Numbers, cpu: Numbers, first_ns: int, period_s: float, shares: CoreShares) -> Iterator[Episode]:
    """Its bursts, if it has nothing but bursts, on one core, at a steady beat."""
    cores = np.bincount(cpu)
    core = int(np.argmax(cores))
    if cores[core] < _ON_ONE_CORE * cores.sum():
        return
    busy = np.bincount(place) * period_s * NS_PER_S / _BIN_NS
    found = list(_bursts(busy))
    period = period_of_starts([first_ns + first * _BIN_NS for first, _ in found])
    if period is None:
        return
    for first, end in found:
        span = first_ns + first * _BIN_NS, first_ns + end * _BIN_NS
        mode = _mode(shares, core, span)
        kind = Kind.USER_BUSY if mode == "user" else Kind.ELEVATED
        level, seconds = min(1.0, float(busy[first:end].mean())), (end - first) * _BIN_NS / NS_PER_S
        text = f"{comm} took core {core} for about {seconds:.1f} s, {told(period)}"
        yield Episode(kind, core, mode, *span, level, text, "samples", is_strong=False, subject=comm)


def _bursts(busy: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Iterator[tuple[int, int]]:
    """First bin and the one after the last of each, with a rest before it; none if it works in between as well."""
    flags = busy >= _FULL
    last_end = -_REST_BINS
    for first, end in runs(flags, np.append(True, np.zeros(len(busy) - 1, dtype=bool))):
        is_rested = first - last_end >= _REST_BINS
        last_end = end
        if is_rested and _SHORTEST_S <= float(busy[first:end].sum()) * _BIN_NS / NS_PER_S <= _LONGEST_S:
            yield first, end


def _mode(shares: CoreShares, core: int, span: Span) -> str:
    """User or system, as the core was booked in most of that time."""
    if not len(shares.rows):
        return "user"
    time = shares.rows["time"]
    inside = (shares.rows["cpu"] == core) & (time > span[0]) & (time <= span[1] + NS_PER_S)
    return "user" if shares.shares["user"][inside].sum() >= shares.shares["kernel"][inside].sum() else "system"


def _codes(column: pa.ChunkedArray) -> tuple[Numbers, list[str]]:
    encoded = column.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    codes: Numbers = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [str(name) for name in encoded.dictionary.to_pylist()]
