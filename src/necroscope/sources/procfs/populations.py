"""The `populations` rows: how many objects of each kind exist, from files that tell it without a
walk; what must be walked is counted in the background, and seldom.

Slab caches and lists are read at the start of a segment, when a number that costs next to nothing
says that something moved (the memory of the slab caches; sockets, threads, files), and at a
trigger.
"""

from pathlib import Path
from typing import Final, NamedTuple

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.model.reading import Gap, Moment, Reading, Row, Source, Trouble
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.sources.background import Background
from necroscope.sources.kept_file import KeptFile
from necroscope.sources.procfs import population_files, slab_caches
from necroscope.sources.procfs.counted_lists import MountList, counted_lists
from necroscope.sources.procfs.largest_holders import Holder, LargestHolders

_PERIOD_NS: Final = round(TABLES["populations"].period_s * NS_PER_S)
# While something grows, so that a walk that comes again and again is seen with each new number.
_MOVING_S: Final = 2.0
_MOVED: Final = 500
_MOVED_PART: Final = 0.03
# /proc/slabinfo costs the kernel 4 ms. Processes that come and go move hundreds of objects in it
# all day, what will hold a core thousands.
_MOVED_SLAB: Final = 5_000
# Of the memory behind them: some 10,000 objects, which is more than comes and goes all day.
_MOVED_BYTES: Final = 2 << 20
_MOVED_BYTES_PART: Final = 0.002
_SELDOM_NS: Final = 300 * NS_PER_S
# Above this a number is reported again when it has changed by a hundredth: threads come and go.
_EXACT: Final = 1_000
_LEAST_CHANGE: Final = 0.01
_SLAB_LINE_BYTES: Final = 256
_MAPPINGS: Final = "slab:vm_area_struct"
_MANY_MAPPINGS: Final = 20_000


class _BackgroundCounts(NamedTuple):
    """What was counted in the background."""

    counts: dict[str, int]
    refusals: dict[str, str]
    holders: list[Holder]


class Populations(Source):
    """A row for each number that changed, and for all of them at the start of a segment."""

    name = "populations"
    tables: tuple[str, ...] = ("populations",)
    period_s = _MOVING_S
    is_read_at_trigger = True

    def __init__(self, root: Path, background: Background[_BackgroundCounts] | None = None) -> None:
        of_init = root / "proc/1/net"
        net = of_init if of_init.exists() else root / "proc/net"
        self._files = [
            (file, KeptFile(_path(root, net, file.path))) for file in population_files.FILES
        ]
        self._slabinfo = KeptFile(root / "proc/slabinfo")
        self._meminfo = KeptFile(root / "proc/meminfo")
        self._merged = slab_caches.merged_names(root)
        self._mounts = MountList(root)
        self._lists = counted_lists(root, self._mounts)
        self._holders = LargestHolders(root)
        self._background = background or Background("populations")
        self._counts: dict[str, int] = {}
        self._last_rows: dict[str, int] = {}
        self._last_holders: dict[tuple[str, int], int] = {}
        self._absent: set[str] = set()
        self._walk_due_ns = self._slabs_due_ns = 0
        self._walked_ns = -_PERIOD_NS
        self._is_walk_wanted = False
        # Of the slab caches, when they were last read; None if the kernel does not report it.
        self._slab_bytes: int | None = None
        self._walk_error: NecroscopeError | None = None

    def start_segment(self) -> None:
        """The next read tells every number, so that the segment explains itself."""
        self._last_rows.clear()
        self._last_holders.clear()
        self._absent.clear()
        self.idle_until_ns = self._slabs_due_ns = self._walk_due_ns = 0

    def read(self, now: Moment) -> Reading:
        walked = self._take_walked()
        gaps: list[Gap] = []
        counts = self._read_files(now, gaps)
        # Only a trigger reads this source before its time.
        is_triggered = now.monotonic_ns < self.idle_until_ns
        counts |= self._read_slabs(now, gaps, is_triggered=is_triggered)
        if walked is not None:
            counts |= walked.counts
            for kind, why in walked.refusals.items():
                self._miss(kind, why, now, gaps)
        moved = {kind for kind, n in counts.items() if _has_moved(kind, self._counts.get(kind), n)}
        self._counts |= counts
        rows = self._rows(counts, now) + self._holder_rows(walked, now)
        self._is_walk_wanted |= is_triggered or bool(moved)
        self._start_walk(now)
        if any(kind.startswith(slab_caches.SLAB) for kind in moved):
            self._slabs_due_ns = 0
        is_soon = bool(moved) or not self._background.is_idle
        self.idle_until_ns = 0 if is_soon else now.monotonic_ns + _PERIOD_NS - NS_PER_S
        return Reading({"populations": rows}, gaps, parts=self._trouble())

    def close(self) -> None:
        self._background.close()
        for _, file in self._files:
            file.close()
        self._slabinfo.close()
        self._meminfo.close()
        self._mounts.close()
        self._holders.close()

    def _start_walk(self, now: Moment) -> None:
        """A look at many processes is a look at some of them after the other: it goes on until it
        has been at all.
        """
        is_wanted = self._is_walk_wanted or not self._holders.is_round_over
        is_due = now.monotonic_ns >= self._walk_due_ns
        is_rested = now.monotonic_ns >= self._walked_ns + _PERIOD_NS
        if (is_due or (is_wanted and is_rested)) and self._background.is_idle:
            self._is_walk_wanted, self._walked_ns = False, now.monotonic_ns
            self._walk_due_ns = now.monotonic_ns + _SELDOM_NS
            self._background.start(self._walk)

    def _walk(self) -> _BackgroundCounts:
        counts = {one.kind: one.read() for one in self._lists}
        known = {kind: count for kind, count in counts.items() if count is not None}
        refusals = {one.kind: one.refusal for one in self._lists if one.refusal is not None}
        holders = self._holders.look(self._counts.get(_MAPPINGS, 0) >= _MANY_MAPPINGS)
        return _BackgroundCounts(known, refusals, holders)

    def _take_walked(self) -> _BackgroundCounts | None:
        """What fails in the background costs nothing of what is read at once."""
        try:
            walked = self._background.take()
        except NecroscopeError as error:
            self._walk_error = error
            return None
        self._walk_error = None if walked is not None else self._walk_error
        return walked

    def _trouble(self) -> tuple[Trouble, ...]:
        trouble = self._walk_error or self._background.trouble
        return () if trouble is None else (Trouble("counted lists", self.tables, trouble),)

    def _read_files(self, now: Moment, gaps: list[Gap]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for file, kept in self._files:
            try:
                counts |= kept.parse(file.parse)
            except SourceUnavailable as error:
                # A module that is not loaded has no objects, and nothing is missing.
                for kind in file.kinds if kept.path.exists() else ():
                    self._miss(kind, error.facts, now, gaps)
        return counts

    def _read_slabs(self, now: Moment, gaps: list[Gap], *, is_triggered: bool) -> dict[str, int]:
        slab_bytes, before_bytes = self._read_slab_bytes(), self._slab_bytes
        has_moved = (
            slab_bytes is not None
            and before_bytes is not None
            and abs(slab_bytes - before_bytes)
            >= max(_MOVED_BYTES, _MOVED_BYTES_PART * before_bytes)
        )
        if not (is_triggered or has_moved or now.monotonic_ns >= self._slabs_due_ns):
            return {}
        self._slab_bytes = slab_bytes
        rest_ns = _SELDOM_NS if slab_bytes is not None else _PERIOD_NS - NS_PER_S
        self._slabs_due_ns = now.monotonic_ns + rest_ns
        self._is_walk_wanted |= has_moved
        try:
            objects = self._slabinfo.parse(slab_caches.parse, longest_record_bytes=_SLAB_LINE_BYTES)
        except SourceUnavailable as error:
            self._miss(f"{slab_caches.SLAB}*", error.facts, now, gaps)
            return {}
        return slab_caches.kinds(objects, self._merged, self._last_rows)

    def _read_slab_bytes(self) -> int | None:
        try:
            return self._meminfo.parse(slab_caches.parse_unreclaimable_bytes, record=True)
        except SourceUnavailable:
            return None

    def _miss(self, kind: str, why: str, now: Moment, gaps: list[Gap]) -> None:
        if kind not in self._absent:
            self._absent.add(kind)
            gaps.append(Gap("populations", now.time_ns, now.time_ns, f"{kind}: {why}"))

    def _rows(self, counts: dict[str, int], now: Moment) -> list[Row]:
        changed = [
            (kind, count)
            for kind, count in counts.items()
            if _is_news(self._last_rows.get(kind), count)
        ]
        self._last_rows.update(changed)
        return [(now.time_ns, kind, count, None, None, None) for kind, count in changed]

    def _holder_rows(self, walked: _BackgroundCounts | None, now: Moment) -> list[Row]:
        rows: list[Row] = []
        for one in walked.holders if walked is not None else ():
            key = one.kind, one.pid
            if _is_news(self._last_holders.get(key), one.count):
                self._last_holders[key] = one.count
                rows.append((now.time_ns, one.kind, one.count, one.pid, one.comm, one.cgroup))
        return rows


def _path(root: Path, net: Path, path: str) -> Path:
    return net / path.removeprefix("net/") if path.startswith("net/") else root / "proc" / path


def _is_news(last: int | None, count: int) -> bool:
    if last is None:
        return True
    change = abs(count - last)
    return change > 0 and (max(last, count) < _EXACT or change >= _LEAST_CHANGE * last)


def _has_moved(kind: str, before: int | None, count: int) -> bool:
    least = _MOVED_SLAB if kind.startswith(slab_caches.SLAB) else _MOVED
    return before is not None and abs(count - before) >= max(least, _MOVED_PART * before)
