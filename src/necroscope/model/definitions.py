"""What the words of this product mean in numbers: saturated, busy, stalled, frozen, late, left
behind, over. Recorder, analysis, check, metrics and `top` use these and no others.
"""

from typing import Final

from necroscope.model.table import Table
from necroscope.model.units import NS_PER_MS, NS_PER_S

# The kernel's share of a core (system, irq, softirq, steal) from which on nothing else gets a turn
# worth having. Not 1.0: a tick of 10 ms at either edge belongs to what ran before and after, so a
# core that is held for exactly one second shows 0.9 or more of it (measured in the lab).
SATURATED_RATIO: Final = 0.9
# The same share of a core, whatever mode it is in: softirqs that do not run on a busy core are
# frozen, on an idle one there are none.
BUSY_RATIO: Final = SATURATED_RATIO
# A core full of user code. Higher than saturated: computing is what cores are for, so only one that
# never pauses is asked about.
USER_BUSY_RATIO: Final = 0.95

# A raised softirq that waits this long is stalled: ten ticks at HZ=100, a fiftieth of the 5 s after
# which network drivers reset their device, and ten times what a loaded but healthy core shows.
STALL_NS: Final = 100 * NS_PER_MS
# Waits that are not a stall yet, and are reported where a cause explains them.
LONG_WAIT_NS: Final = 40 * NS_PER_MS
# Of a thread's time: a napi or ksoftirqd thread that waits this much of it is starving although it
# runs now and then.
STARVING_RATIO: Final = 0.3
# A second as ticks measure it: a tick is never exactly one.
WHOLE_SECOND_NS: Final = 950 * NS_PER_MS
# A busy core on which no softirq of any vector ran for a second is frozen: the timer raises one in
# every tick.
FROZEN_NS: Final = WHOLE_SECOND_NS

# An ordinary task that wanted a core this long has starved: a fair scheduler gives hundreds of
# runnable tasks a turn in less, and a real-time task leaves others a twentieth of each second.
STARVED_NS: Final = 500 * NS_PER_MS
# Policies of tasks that expect their turn: batch and idle ask for what is left over. Threads of the
# kernel are not among them: those of a core that a real-time task keeps wait all day, and nothing
# misses them; what they do for others (softirqs, polls) is measured by itself.
ORDINARY: Final = frozenset({"other"})
REAL_TIME: Final = frozenset({"fifo", "rr", "deadline"})

# Dead memory cgroups from which on a walk over them can hold a core: 10,000 cost 0.7 s before Linux
# 5.8, so a thousand cost what a stall is.
WALKABLE_DEAD_CGROUPS: Final = 1_000
# A leak that is worth a notice although nothing walks it: more, because on its own it costs only
# memory, and ten times the living, because a node with many pods has hundreds of dead ones at any
# moment.
LEAKED_DEAD_CGROUPS: Final = 2_000
LEAKED_TIMES_THE_LIVING: Final = 10

# What is written at the start of a segment holds for all of it: at most this far back it is found.
LONGEST_SEGMENT_NS: Final = 3600 * NS_PER_S
# The recorder writes every few seconds; a live segment that has not grown for this long has no
# recorder any more.
LEFT_BEHIND_NS: Final = 30 * NS_PER_S
# An incident is over when it has been quiet for this long: shorter pauses are between two bursts.
OVER_NS: Final = 5 * NS_PER_S


def late_ns(table: Table) -> int:
    """How long after the fact a row of the table may come: one that is read every tick comes with
    the tick, another after its period and the tick in which it is read.
    """
    if table.period_s <= 1.0:
        return NS_PER_S // 2
    return round((table.period_s + 1.0) * NS_PER_S)
