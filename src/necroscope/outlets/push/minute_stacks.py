"""A minute of samples as a bounded folded summary: the heaviest paths by name and cgroup, and one
row for all that is left.
"""

from collections import Counter
from typing import Any, Final

import numpy as np

from necroscope.model.core_shares import MINUTE_NS
from necroscope.model.definitions import LONGEST_SEGMENT_NS
from necroscope.model.units import NS_PER_S
from necroscope.outlets.push.folded_samples import FoldedSamples
from necroscope.segment.reader import SegmentReader
from necroscope.stacks.frames import frames_at
from necroscope.stacks.samples import numbers, sample_period_ns, stored_period_ns
from necroscope.stacks.segment_tree import CUT, SegmentTree
from necroscope.stacks.tree import LOST, Numbers
from necroscope.store.flame import ALL
from necroscope.store.query import Store
from necroscope.store.segment_selection import SegmentSelection
from necroscope.store.time_limit import TimeLimit
from necroscope.store.window_reading import WindowReading

MOST_ROWS: Final = 200
LEFT_OUT: Final = "(left out)"
# Stacks that are named; paths that differ in nameless frames only become one of them.
_MOST_NAMED: Final = 1000
# Of a deeper one the outermost frames are left out: what it does is at its inner end.
_LONGEST_PATH: Final = 4000
# Samples are folded piece by piece, so that a minute of 96 busy cores takes no more memory than a
# few seconds of it.
_PIECE_NS: Final = 10 * NS_PER_S
_KEYS: Final = ["stack", "comm", "cgroup"]

Columns = dict[str, list[Any]]
# Name, cgroup and path; and what stands for all that are not named.
Path = tuple[str, str | None, str]
_REST: Final[Path] = ("", None, LEFT_OUT)


def stack_minutes(
    store: Store, from_ns: int, to_ns: int, limit: TimeLimit | None = None
) -> Columns:
    """Rows of the lake's `stack_minutes` for the samples of these minutes."""
    limit = limit or TimeLimit()
    found: Columns = {
        name: [] for name in ("time", "comm", "cgroup", "path", "samples", "period_ns")
    }
    start_ns = from_ns
    while start_ns < to_ns:
        minute_ns = start_ns // MINUTE_NS * MINUTE_NS
        end_ns = min(minute_ns + MINUTE_NS, to_ns)
        _add_rows(
            found,
            minute_ns,
            _fold(store, start_ns, end_ns, limit),
            _period_ns(store, start_ns, end_ns),
        )
        start_ns = end_ns
    return found if found["time"] else {}


def _add_rows(found: Columns, minute_ns: int, weights: Counter[Path], period_ns: int) -> None:
    rest = weights.pop(_REST, 0)
    heaviest = sorted(
        weights.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or "", item[0][2])
    )
    rest += sum(weight for _, weight in heaviest[MOST_ROWS - 1 :])
    for path, weight in heaviest[: MOST_ROWS - 1] + ([(_REST, rest)] if rest else []):
        for name, value in zip(found, (minute_ns, *path, weight, period_ns), strict=True):
            found[name].append(value)


def _fold(store: Store, from_ns: int, to_ns: int, limit: TimeLimit) -> Counter[Path]:
    reading = WindowReading(store, from_ns, to_ns, limit)
    return sum(reading.segments(lambda reader: _of_segment(reader, from_ns, to_ns)), Counter())


def _of_segment(reader: SegmentReader, from_ns: int, to_ns: int) -> Counter[Path]:
    selected, folding = SegmentSelection(reader, ALL), FoldedSamples()
    for start_ns in range(from_ns, to_ns, _PIECE_NS):
        rows = selected.samples(start_ns, min(start_ns + _PIECE_NS, to_ns), _KEYS).rows
        if rows.num_rows:
            folding.add(rows)
    return _weights_by_path(folding, selected.stacks) if len(folding.keys) else Counter()


def _weights_by_path(folding: FoldedSamples, stacks: SegmentTree) -> Counter[Path]:
    heavy, rest = folding.heaviest(_MOST_NAMED)
    weights: Counter[Path] = Counter({_REST: folding.rest + rest})
    heaviest = list(folding.stacks(heavy))
    places = stacks.rows(np.array([stack for stack, _, _ in heaviest], dtype=np.int64))
    paths = _paths(places[places != LOST], stacks)
    for place, (_, comm, cgroup), weight in zip(
        places.tolist(), heaviest, folding.weights[heavy].tolist(), strict=True
    ):
        weights[_REST if place == LOST else (comm, cgroup, paths[place])] += weight
    return weights


def _paths(places: Numbers, stacks: SegmentTree) -> dict[int, str]:
    """The path of each stack as text; of its callers each is named once."""
    ends = np.unique(places).tolist()
    paths = list(stacks.tree.paths(ends))
    used = sorted({frame for path in paths for frame in path})
    frames = frames_at(stacks.frames, np.array(used, dtype=np.int64))
    names = {
        row: _name(frame.function, frame.module) for row, frame in zip(used, frames, strict=True)
    }
    return {
        end: _cut_path(";".join(names[frame] for frame in path))
        for end, path in zip(ends, paths, strict=True)
    }


def _cut_path(path: str) -> str:
    return (
        path if len(path) <= _LONGEST_PATH else f"{CUT};{path[-_LONGEST_PATH:].partition(';')[2]}"
    )


def _name(function: str | None, module: str | None) -> str:
    """A frame without a name is its module: offsets differ from node to node."""
    return (function or f"[{(module or 'unknown').strip('[]').rpartition('/')[2]}]").replace(
        ";", ","
    )


def _period_ns(store: Store, from_ns: int, to_ns: int) -> int:
    """What one sample stands for: as recorded, else measured in the middle of the minute."""
    stored_ns = stored_period_ns(
        store.rows("sampling", from_ns - LONGEST_SEGMENT_NS, to_ns), from_ns, to_ns
    )
    if stored_ns is not None:
        return round(stored_ns)
    middle_ns = (from_ns + to_ns) // 2
    rows = store.rows(
        "samples", middle_ns, min(middle_ns + 3 * NS_PER_S, to_ns), columns=("time", "cpu")
    )
    return round(sample_period_ns(numbers(rows, "time"), numbers(rows, "cpu")))
