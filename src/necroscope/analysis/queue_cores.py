"""Which core polls a network queue: queue -> interrupt -> the core that took it, or may take it alone."""

from typing import Final

import numpy as np

from necroscope.analysis.columns import Columns
from necroscope.model.units import NS_PER_S

# The table is read every 10 s; a queue that stalls has no interrupts in the last of these rows.
_COUNTED_BACK_NS: Final = 120 * NS_PER_S
_LATE_NS: Final = 15 * NS_PER_S


def core_of_queue(interrupts: Columns, device: str | None, queue: int, time_ns: int) -> int | None:
    """The core that took most of the queue's interrupts lately, else the only one that may; None if that cannot be told."""
    rows = _of_queue(interrupts, device, queue)
    rows = rows.at(rows["time"] <= time_ns + _LATE_NS)
    if not len(rows):
        return None
    recent = rows.at((rows["time"] > time_ns - _COUNTED_BACK_NS) & (rows["count"] > 0))
    if len(recent):
        cpus, place = np.unique(recent["cpu"], return_inverse=True)
        return int(cpus[int(np.argmax(np.bincount(place, weights=recent["count"])))])
    # Rows of count 0 stand for every core of the affinity.
    allowed = np.unique(rows.at(rows["time"] == rows["time"].max())["cpu"])
    return int(allowed[0]) if len(allowed) == 1 else None


def _of_queue(interrupts: Columns, device: str | None, queue: int) -> Columns:
    if not len(interrupts):
        return interrupts
    rows = interrupts.at(interrupts["queue"] == queue)
    own = rows.at(rows["device"] == device) if len(rows) else rows
    if len(own):
        return own
    # A device without numbered interrupts has one for all its queues (e1000e with IntMode=1, every device on a shared line).
    unnumbered = interrupts.at(interrupts["device"] == device) if device is not None else own
    if len(unnumbered) and not np.isfinite(unnumbered["queue"]).any():
        return unnumbered
    # A line may name the bus address instead; with one device that has queues there is no doubt.
    devices = {name for name in interrupts["device"] if name is not None}
    return rows if len(devices) == 1 else own
