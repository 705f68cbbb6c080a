"""A core's time by mode: which counters of /proc/stat make up a mode, and a share of
time as a whole number.
"""

from typing import Final

from necroscope.model.units import NS_PER_S

MINUTE_NS: Final = 60 * NS_PER_S
# Columns of `cores` by mode. iowait is idle time with a task in I/O. What a guest runs is user
# time of its host.
MODE_PARTS: Final = {
    "user": ("user_ns", "nice_ns", "guest_ns"),
    "system": ("system_ns",),
    "irq": ("irq_ns",),
    "softirq": ("softirq_ns",),
    "steal": ("steal_ns",),
    "idle": ("idle_ns", "iowait_ns"),
}
BUSY_MODES: Final = ("user", "system", "irq", "softirq", "steal")
MEAN_MODES: Final = (*BUSY_MODES, "idle")
WORST_MODES: Final = ("busy", *BUSY_MODES)
# Shares are stored in this many parts. The same rounding everywhere: a picture from minutes is that
# of their ticks.
WHOLE: Final = 10_000


def whole_share(share: float) -> int:
    """In 1/10000; the kernel counts in ticks of its own, so a share may come out above one."""
    return round(min(max(share, 0.0), 1.0) * WHOLE)
