"""When the probe at every softirq rests: its cost is others' time, and on a core full of packets it
would pass one percent.

Only what is well is left alone. While any softirq waits long, all are timed; after each rest comes
a measured tick, in which a stall that began meanwhile shows by the raises that repeat (the timer's
come with every tick of the kernel). A rest that is longer than a driver's deadline is ended by the
recorder within a tick when weaker signs show a stall (`Triggers.sees_stall`): softirqs that stand
still on a busy core, a thread of a poll that gets no time.
"""

from collections import Counter
from math import ceil
from operator import itemgetter
from typing import Final

from necroscope.model.reading import Rows
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_MS

# Both programs with all that leads to them, on a machine where a reading of the clock takes 55 ns
# (docs/benchmarks.md).
PAIR_NS: Final = 250
# Of the busiest core: more than the first is too much, and rests bring it down to the second, as
# far as they may.
_TOO_MUCH: Final = 0.01
_WANTED: Final = 0.005
# Short waits are seen in measured ticks only: there is one at least every quarter of a minute.
_MOST_TICKS: Final = 14
_WELL_NS: Final = 10 * NS_PER_MS

_CPU: Final = TABLES["softirq_delay"].index_of("cpu")
_COUNT: Final = TABLES["softirq_delay"].index_of("count")
_COUNT_OF: Final = itemgetter(_COUNT)
_WAITS: Final = tuple(TABLES["softirq_delay"].index_of(name) for name in ("worst_ns", "pending_ns"))


def ticks_of_rest(rows: Rows, elapsed_ns: int) -> int:
    """How many ticks the probe is to rest after one of `elapsed_ns` that gave these rows of
    `softirq_delay`; mostly none.
    """
    if sum(map(_COUNT_OF, rows)) * PAIR_NS <= _TOO_MUCH * elapsed_ns:  # all cores together
        return 0
    if any(_number(row[wait]) >= _WELL_NS for row in rows for wait in _WAITS):
        return 0
    counts: Counter[object] = Counter()
    for row in rows:
        counts[row[_CPU]] += _number(row[_COUNT])
    return ticks_for(max(counts.values(), default=0) * PAIR_NS / max(elapsed_ns, 1))


def ticks_for(cost: float) -> int:
    """How many ticks a probe is to rest that took this share of the busiest core."""
    return min(ceil(cost / _WANTED) - 1, _MOST_TICKS) if cost > _TOO_MUCH else 0


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
