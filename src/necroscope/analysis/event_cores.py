"""Which core an event is of: by the best evidence there is, and it says by which.

A network reset is joined to its core by the driver's own word, else by its queue's interrupt and
the core that takes it, else because only one core had an episode; where its interrupts are
recorded, a core that takes none of them is left out. One driver (ENA 2.17.0) prints core and queue
in each other's place; where the interrupts say so, they are put right.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays, Flags
from necroscope.analysis.episodes import Episode, touches
from necroscope.analysis.happenings import NIC_KINDS, Happening
from necroscope.model.definitions import late_ns
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S

BY_DRIVER: Final = "the line names the core"
BY_QUEUE: Final = "queue, interrupt and the core that takes it"
BY_EPISODE: Final = "the only core with an episode at that time"
BY_DEVICE: Final = "the only core with an episode at that time that takes interrupts of the device"
# A queue that stalls has no interrupts in the last of these rows.
_COUNTED_BACK_NS: Final = 120 * NS_PER_S
_LATE_NS: Final = late_ns(TABLES["interrupts"])


@dataclass(frozen=True, slots=True)
class JoinedEvent:
    """An event with the core it was joined to; `joined_by` says by what evidence."""

    happening: Happening
    core: int | None
    queue: int | None
    joined_by: str | None

    @property
    def kind(self) -> str:
        return self.happening.kind

    @property
    def time_ns(self) -> int:
        return self.happening.time_ns

    @property
    def fields(self) -> dict[str, object]:
        return self.happening.fields


def join(
    happening: Happening,
    episodes: Iterable[Episode],
    interrupts: ColumnArrays,
    takers: Collection[int] | None,
) -> JoinedEvent:
    """An event and its core, by the best evidence there is. `takers` are the cores that take its
    device's interrupts.
    """
    core, queue = happening.core, happening.queue
    if core is not None:
        if queue is not None and queue != core and _is_swapped(happening, core, queue, interrupts):
            return JoinedEvent(
                happening, queue, core, f"{BY_DRIVER}, with core and queue in each other's place"
            )
        return JoinedEvent(happening, core, queue, BY_DRIVER)
    if queue is not None:
        core = core_of_queue(interrupts, happening, queue)
        if core is not None:
            return JoinedEvent(happening, core, queue, BY_QUEUE)
    if happening.is_of_the_device or not happening.is_of_a_core:
        return JoinedEvent(happening, None, queue, None)
    span = Span(happening.began_ns, happening.time_ns)
    held = {e.cpu for e in episodes if e.cpu is not None and e.is_strong and touches(e.span, span)}
    cores = held if takers is None else held.intersection(takers)
    if len(cores) != 1:
        return JoinedEvent(happening, None, queue, None)
    return JoinedEvent(happening, min(cores), queue, BY_EPISODE if cores == held else BY_DEVICE)


def _is_swapped(happening: Happening, core: int, queue: int, interrupts: ColumnArrays) -> bool:
    """The interrupts say that the queue of that number is another core's, and that the other way
    round it fits.
    """
    said = core_of_queue(interrupts, happening, queue)
    turned = core_of_queue(interrupts, happening, core)
    return said != core and turned == queue and happening.may_swap_core_and_queue


def core_of_queue(interrupts: ColumnArrays, happening: Happening, queue: int) -> int | None:
    """The only core that the queue's interrupt goes to, else the one that took most of them last;
    None if that is not known.
    """
    if not len(interrupts):
        return None
    if happening.kind not in NIC_KINDS:
        # A disk's queue: its affinity is read only once, and says nothing of where its interrupt
        # goes now.
        own = interrupts.at(interrupts["action"] == f"{happening.device}q{queue}")
        return _took_most(_rows_before(own, happening.time_ns), happening.time_ns)
    rows = _rows_before(_of_queue(interrupts, happening.device, queue), happening.time_ns)
    only = _goes_to(rows)
    return _took_most(rows, happening.time_ns) if only is None else only


def cores_of_device(interrupts: ColumnArrays, happening: Happening) -> frozenset[int] | None:
    """Cores that take an interrupt of the network device, or may; None if no interrupt of it is
    recorded.
    """
    if happening.kind not in NIC_KINDS or not len(interrupts):
        return None
    rows = _rows_before(_of_device(interrupts, happening.device), happening.time_ns)
    if not len(rows):
        return None
    # What is newest of each tells where it goes also if nothing came.
    newest = {
        irq: time_ns
        for time_ns, irq in sorted(set(zip(rows["time"].tolist(), rows["irq"], strict=True)))
    }
    is_newest = np.array([newest[irq] for irq in rows["irq"]]) == rows["time"]
    return frozenset(
        rows.at(is_newest | _is_counted_lately(rows, happening.time_ns))["cpu"].tolist()
    )


def _rows_before(rows: ColumnArrays, time_ns: int) -> ColumnArrays:
    """What was known when the line was written; after it a reset may have sent the interrupts
    elsewhere.
    """
    before = rows.at(rows["time"] <= time_ns)
    return before if len(before) else rows.at(rows["time"] <= time_ns + _LATE_NS)


def _goes_to(rows: ColumnArrays) -> int | None:
    """The core of the newest affinity if it is a single one. Each change of it has a row, also of a
    queue that stands still.
    """
    newest = set(rows.at(rows["time"] == rows["time"].max())["affinity"]) if len(rows) else set()
    only = newest.pop() if len(newest) == 1 else None
    return int(only) if only is not None and only.isdigit() else None


def _took_most(rows: ColumnArrays, time_ns: int) -> int | None:
    """The core that took most of the interrupts in the last read in which any came: before that
    they may have gone elsewhere.
    """
    came = rows.at(_is_counted_lately(rows, time_ns))
    if not len(came):
        return None
    last = came.at(came["time"] == came["time"].max())
    cpus, place = np.unique(last["cpu"], return_inverse=True)
    return int(cpus[int(np.argmax(np.bincount(place, weights=last["count"])))])


def _is_counted_lately(rows: ColumnArrays, time_ns: int) -> Flags:
    return np.asarray((rows["time"] > time_ns - _COUNTED_BACK_NS) & (rows["count"] > 0))


def _of_queue(interrupts: ColumnArrays, device: str | None, queue: int) -> ColumnArrays:
    own = _of_device(interrupts, device)
    numbered = own.at(own["queue"] == queue)
    if len(numbered) or np.isfinite(own["queue"]).any():
        return numbered
    # A device without numbered interrupts may have one for all its queues (e1000e with IntMode=1,
    # every device on a shared line; virtio has another for its configuration). Of several nobody
    # knows which is the queue's.
    irqs = {
        irq
        for irq, action in zip(own["irq"], own["action"], strict=True)
        if not action.endswith("-config")
    }
    return own.at(np.isin(own["irq"], list(irqs))) if len(irqs) == 1 else numbered


def _of_device(interrupts: ColumnArrays, device: str | None) -> ColumnArrays:
    """By its name, else by its bus address, which a line may give instead; with one network device
    there is no doubt.
    """
    own = (
        interrupts.at(interrupts["device"] == device)
        if device is not None
        else interrupts.at(slice(0))
    )
    if len(own):
        return own
    known = {
        (name, action)
        for name, action in zip(interrupts["device"], interrupts["action"], strict=True)
        if name is not None
    }
    names = {
        name for name, action in known if action.replace("@pci:", "@").endswith(f"@{device}")
    } or {name for name, _ in known}
    return interrupts.at(interrupts["device"] == names.pop()) if len(names) == 1 else own
