"""What a collector does between pushes: the inbox becomes tables, small files become large ones,
tokens are read again.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Final

import pyarrow as pa

from necroscope.errors import NecroscopeError
from necroscope.fleet.collector.collector import Collector
from necroscope.fleet.compaction import Compactor
from necroscope.fleet.lake import Lake, day_of
from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.fleet.merging import Merger
from necroscope.model.units import format_bytes

_KEPT: Final = frozenset({"facts"})
_DAY: Final = re.compile(r"/date=(\d{4}-\d\d-\d\d)/")


def remove_days_before(lake: Lake, first: date) -> int:
    """Remove rows and bundles of days (UTC, by the nodes' clocks) before `first`; answers how many
    files went.
    """
    paths = [
        path
        for table in LAKE_TABLES.keys() - _KEPT
        for day in lake.days(table)
        if day < first
        for path in lake.list(f"tables/{table}/date={day}")
    ]
    paths += [
        path
        for path in lake.list("bundles")
        if (day := _DAY.search(path)) and date.fromisoformat(day[1]) < first
    ]
    for path in paths:
        lake.delete(path)
    return len(paths)


# In rounds, of which there is one every ten seconds.
_MERGE_EVERY: Final = 6
_TELL_EVERY: Final = 6
_ALL_DAYS_EVERY: Final = 360


class Upkeep:
    """Rounds in a thread of their own. What fails is reported once and tried again in the next
    round: the inbox waits.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._compactor = Compactor(collector.lake, collector.name, collector.clock_ns)
        self._merger = Merger(collector.lake, collector.name, collector.clock_ns)
        self._thread = ThreadPoolExecutor(1, "upkeep")
        self._closing = asyncio.Event()
        self._rounds = 0
        self._troubles: dict[str, str] = {}
        self._reported_batches = 0

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self._collector.compact_every_s)
                break
            await self._look_at_lake()
            await loop.run_in_executor(self._thread, self.round)
        await loop.run_in_executor(self._thread, self._last_round)
        self._thread.shutdown()

    def close(self) -> None:
        self._closing.set()

    async def _look_at_lake(self) -> None:
        commits = self._collector.commits
        if commits.failure is not None:
            await commits.probe()
        self._report_change(
            "pushes",
            None if commits.failure is None else f"answered with 503: {commits.failure.facts}",
        )

    def round(self) -> None:
        self._rounds += 1
        self._try("tokens", self._refresh_tokens)
        self._try("compaction", self._compact)
        self._try("deaths of jobs", self._collector.job_deaths.refresh)
        if self._rounds % _MERGE_EVERY == 0:
            self._try("merging", self._merge)
        if self._rounds % _ALL_DAYS_EVERY == 1:
            self._try("cleaning", self._clean)
        if self._rounds % _TELL_EVERY == 0:
            self._report_progress()
        # Arrow keeps what it has freed; between rounds it is not needed.
        pa.default_memory_pool().release_unused()

    def _last_round(self) -> None:
        """What came last is in the tables for who reads them next; if not, the next collector does
        it.
        """
        self._try("compaction", self._compact)
        self._try("merging", lambda: self._merger.remove_retired(at_once=True))

    def _refresh_tokens(self) -> None:
        if self._collector.tokens.refresh():
            self._collector.say("tokens: read again")

    def _compact(self) -> None:
        began_s = time.monotonic()
        done = self._compactor.compact()
        metrics = self._collector.metrics
        metrics.observe("compaction_seconds", time.monotonic() - began_s)
        metrics.add("compacted_files", done.files)
        metrics.add("refused_files", len(done.refused))
        for table, rows in done.rows.items():
            metrics.add("rows", rows, table)
        for path in done.refused:
            self._collector.say(
                f"compaction: cannot read what was acknowledged; kept as {path} in the lake"
            )

    def _merge(self) -> None:
        is_all_days = self._rounds % _ALL_DAYS_EVERY == 0
        self._collector.metrics.add("merged_files", self._merger.merge(is_all_days=is_all_days))

    def _clean(self) -> None:
        collector = self._collector
        collector.lake.remove_leftovers()
        if collector.keep_ns is not None:
            first = day_of(collector.clock_ns() - collector.keep_ns)
            if removed := remove_days_before(collector.lake, first):
                collector.say(f"cleaning: {removed:,} files of days before {first} removed")

    def _try(self, what: str, work: Callable[[], object]) -> None:
        try:
            work()
        except (NecroscopeError, OSError, pa.ArrowException) as error:
            self._collector.metrics.add("upkeep_failures")
            self._report_change(
                what, error.facts if isinstance(error, NecroscopeError) else str(error)[:200]
            )
        else:
            self._report_change(what, None)

    def _report_change(self, what: str, trouble: str | None) -> None:
        """Once when it begins or changes, once when it ends."""
        if trouble is None:
            if self._troubles.pop(what, None) is not None:
                self._collector.say(f"{what}: goes on")
        elif self._troubles.get(what) != trouble:
            self._troubles[what] = trouble
            self._collector.say(f"{what}: {trouble}")

    def _report_progress(self) -> None:
        metrics = self._collector.metrics
        batches = metrics.count("batches")
        if batches > self._reported_batches:
            new, size = batches - self._reported_batches, format_bytes(metrics.count("batch_bytes"))
            self._collector.say(
                f"{new:,} batches in the last minute; since the start {batches:,} in {size}"
            )
        self._reported_batches = batches
