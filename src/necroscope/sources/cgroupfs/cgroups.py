"""The `cgroups` table: who lives, who is dead but held, and what limits did, over v1, v2 and hybrid
hierarchies.
"""

import time
from collections.abc import Callable
from pathlib import Path

from necroscope.errors import SourceUnavailable
from necroscope.model.reading import Gap, Moment, Reading, Source
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_MS
from necroscope.sources.cgroupfs import counts, hierarchies, limits
from necroscope.sources.cgroupfs.hierarchies import Hierarchy
from necroscope.sources.cgroupfs.walk import TIME_LIMIT_NS, Walk, walk
from necroscope.sources.kept_file import KeptFile


class Cgroups(Source):
    """Rows of path `/` for each controller, of sub-trees that hold dead ones (v2), and of cgroups
    whose limits acted.
    """

    name = "cgroups"
    tables: tuple[str, ...] = ("cgroups",)
    period_s = TABLES["cgroups"].period_s

    def __init__(self, root: Path, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._root = root
        self._clock_ns = clock_ns
        self._file = KeptFile(root / "proc/cgroups")
        self._hierarchies: list[Hierarchy] = []
        self._limits: dict[bytes, list[limits.CgroupLimits]] = {}
        self._read_at: Moment | None = None

    def read(self, now: Moment) -> Reading:
        if not self._hierarchies:
            self._hierarchies = hierarchies.read(self._root)
            self._limits = {
                hierarchy.mount_point: _limits_of(hierarchy) for hierarchy in self._hierarchies
            }
        reading = Reading({"cgroups": []})
        walks = self._walk_all(reading, now)
        self._count(reading, walks, now)
        for hierarchy, seen in walks:
            self._read_limits(reading, hierarchy.mount_point, seen, now)
        self._read_at = now
        return reading

    def close(self) -> None:
        self._file.close()

    def _walk_all(self, reading: Reading, now: Moment) -> list[tuple[Hierarchy, Walk]]:
        """The directories of the hierarchies that have figures to read, all within one time
        limit.
        """
        deadline_ns = self._clock_ns() + TIME_LIMIT_NS
        walks = []
        for hierarchy in self._hierarchies:
            if self._limits[hierarchy.mount_point]:
                try:
                    seen = walk(
                        hierarchy.mount_point, self._clock_ns, deadline_ns - self._clock_ns()
                    )
                except OSError as error:
                    self._hierarchies = []
                    facts = (
                        f"cannot list {hierarchy.mount_point.decode('utf-8', 'backslashreplace')}:"
                        f" {error.strerror}"
                    )
                    raise SourceUnavailable(
                        facts, "mount the node's /sys/fs/cgroup below --host-root"
                    ) from None
                walks.append((hierarchy, seen))
                if seen.is_cut:
                    within = (
                        f" within {TIME_LIMIT_NS // NS_PER_MS} ms"
                        if self._clock_ns() > deadline_ns
                        else ""
                    )
                    cause = f"more than {len(seen.paths)} cgroups: not all were counted{within}"
                    reading.gaps.append(self._gap(now, cause))
        return walks

    def _count(self, reading: Reading, walks: list[tuple[Hierarchy, Walk]], now: Moment) -> None:
        rows = reading.rows["cgroups"]
        visible = {
            h.controllers: len(seen.paths)
            for h, seen in walks
            if h.version == 1 and h.is_whole and not seen.is_cut
        }
        for controller in self._controllers():
            if controller.is_enabled and controller.hierarchy:
                directories = next(
                    (n for names, n in visible.items() if controller.name == "memory" in names),
                    None,
                )
                rows.append(
                    counts.count_v1(controller.name, controller.cgroups, directories).row(
                        now.time_ns
                    )
                )
        for hierarchy, seen in walks:
            if hierarchy.version == 2:
                rows += [
                    count.row(now.time_ns)
                    for count in counts.read_v2(hierarchy.mount_point, seen.paths)
                ]
            if self._read_at is None and not hierarchy.is_whole:
                names = ",".join(hierarchy.controllers) or "unified"
                reading.gaps.append(
                    self._gap(
                        now,
                        f"only a part of the {names} hierarchy can be seen, not that of the node",
                    )
                )

    def _controllers(self) -> list[hierarchies.Controller]:
        """Without /proc/cgroups (a kernel without v1) there is v2 alone, which counts for
        itself.
        """
        try:
            return self._file.parse(hierarchies.parse_cgroups)
        except SourceUnavailable:
            if any(hierarchy.version == 1 for hierarchy in self._hierarchies):
                raise
            return []

    def _read_limits(self, reading: Reading, top: bytes, seen: Walk, now: Moment) -> None:
        for reader in self._limits[top]:
            rows, left = reader.read(top, seen, now.time_ns, self._clock_ns)
            reading.rows["cgroups"] += rows
            if left:
                cause = (
                    f"limits of {left} of {len(seen.paths)} {reader.controller} cgroups were not"
                    " read twice in a row"
                )
                reading.gaps.append(self._gap(now, cause, left))

    def _gap(self, now: Moment, cause: str, lost: int | None = None) -> Gap:
        return Gap("cgroups", (self._read_at or now).time_ns, now.time_ns, cause, lost=lost)


def _limits_of(hierarchy: Hierarchy) -> list[limits.CgroupLimits]:
    if hierarchy.version == 2:
        return [limits.CgroupLimits("unified", limits.figures_v2)]
    readers = {"cpu": limits.figures_v1_cpu, "memory": limits.figures_v1_memory}
    return [
        limits.CgroupLimits(name, figures)
        for name, figures in readers.items()
        if name in hierarchy.controllers
    ]
