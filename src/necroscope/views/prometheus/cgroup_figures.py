"""Cgroups alive and dead: what the kernel still holds, what is visible, and how fast they are made
and let go.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from necroscope.views.prometheus.exposition import Counter, Gauge, Metric

COLUMNS: Final = ("time", "controller", "path", "tracked", "visible", "dying")
LEDGER_COLUMNS: Final = ("time", "action")
# The controller whose zombies cost, and cgroup v2 as a whole; the others are as many or fewer.
_CONTROLLERS: Final = ("memory", "unified")


class CgroupFigures:
    """Fed with new rows of `cgroups` (every ten seconds) and of `cgroup_ledger`."""

    def __init__(self) -> None:
        self._dying = Gauge(
            "necroscope_cgroups_dying",
            "Cgroups removed but still held by the kernel: zombies.",
            ("controller",),
        )
        self._visible = Gauge(
            "necroscope_cgroups_visible", "Cgroups that have a directory.", ("controller",)
        )
        self._tracked = Gauge(
            "necroscope_cgroups_tracked",
            "Cgroups that the kernel holds, dead or alive.",
            ("controller",),
        )
        self._ledger = Counter(
            "necroscope_cgroup_changes_total", "Cgroups made, removed and released.", ("action",)
        )
        for action in ("made", "removed", "released"):
            self._ledger.add(0, action)

    def metrics(self) -> Iterator[Metric]:
        yield from (self._dying, self._visible, self._tracked, self._ledger)

    def take(self, rows: pa.Table) -> None:
        """The last row of the whole hierarchy counts; where the kernel does not count the dead,
        they are what is not visible.
        """
        for row in rows.filter(pc.equal(rows.column("path").cast(pa.utf8()), "/")).to_pylist():
            controller, tracked, visible, dying = (
                row["controller"],
                row["tracked"],
                row["visible"],
                row["dying"],
            )
            if controller in _CONTROLLERS:
                if dying is None and tracked is not None and visible is not None:
                    dying = max(0, tracked - visible)
                self._dying.set(dying, controller)
                self._visible.set(visible, controller)
                self._tracked.set(tracked, controller)

    def take_ledger(self, rows: pa.Table) -> None:
        for found in pc.value_counts(rows.column("action").cast(pa.utf8())).to_pylist():
            self._ledger.add(found["counts"], found["values"])
