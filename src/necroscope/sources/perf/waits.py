"""Who did not run: every wait over a threshold, with who was in the way, and how long tasks usually
wait for their core.

The kernel decides what is a long wait (`wait_programs`), so that a tick reads a few records. Waits
that go on are asked for at each tick (`wait_scan`). docs/waits.md says what is not seen.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.reading import Gap, Moment, Reading, Row, Rows, Source, Trouble
from necroscope.model.tables import RUN_DELAY_BUCKETS
from necroscope.model.units import NS_PER_MS, NS_PER_S
from necroscope.sources.perf.bucket_counts import rises
from necroscope.sources.perf.probe_rest import ticks_for
from necroscope.sources.perf.wait_layout import CORE_BYTES, LOST, WORST
from necroscope.sources.perf.wait_naming import WaitNaming
from necroscope.sources.perf.wait_probe import WaitProbe
from necroscope.sources.perf.wait_records import is_late, outline, parse, tenant, waited_ns
from necroscope.sources.procfs.blocked_tasks import CloseReader
from necroscope.sources.procfs.standing_tasks import PERIOD_NS, StandingTasks

# Both programs with all that leads to them; two empty ones alone are 170 ns (docs/waits.md).
SWITCH_NS: Final = 220
_TRY_AGAIN_NS: Final = 600 * NS_PER_S
_MOST_ROWS: Final = 128
_MOST_ROWS_OF_TENANT: Final = 32
# A wait this long is an incident to be: nothing is left out while there are any.
_LONG_NS: Final = 100 * NS_PER_MS
# Times what a look at all tasks takes: from one to the next, so that they take 1 % of a core.
_SCANS_APART: Final = 100
# While the last look found no new long one and every switch is looked at: no wait ends unseen.
_CALM_NS: Final = 1_500_000_000
_REST: Final = (
    "too many switches: timing them all would take over 1 % of a core, and none waited long:"
    " waits that end between two ticks are not seen"
)
_BOUND: Final = (
    f"more waits than are kept: {_MOST_ROWS} per tick, cgroups in turns, the longest"
    f" {_MOST_ROWS_OF_TENANT} of each"
)


class Waits(Source):
    """Opens at the first read. `name_function` names an address of the kernel; `spent_ns` is this
    thread's time on a core.
    """

    name = "waits"
    tables = ("waits", "late_beats", "run_delay")

    def __init__(
        self,
        root: Path,
        possible_cpus: Sequence[int],
        threshold_ns: int,
        name_function: Callable[[int], str | None],
        spent_ns: Callable[[], int] = time.thread_time_ns,
        read_closely: CloseReader | None = None,
    ) -> None:
        self._root = root
        self._spent_ns = spent_ns
        self._scan_from_ns = self._scan_not_before_ns = 0
        self._core_count = max(possible_cpus) + 1
        self._threshold_ns = threshold_ns
        self._tasks = WaitNaming(root / "proc", name_function, read_closely)
        self._probe: WaitProbe | None = None
        self._open_waits = OpenWaits()
        self._before = b""
        self._read_at = Moment(0, 0)
        self._rest: tuple[int, int] | None = None
        self._standing = StandingTasks(root / "proc", read_closely=read_closely)
        self._refusal: tuple[SourceUnavailable, int] | None = None
        self._looked_ns = -PERIOD_NS

    def read(self, now: Moment) -> Reading:
        if self._probe is None:
            return self._open(now)
        reading = Reading()
        if self._rest is not None and now.monotonic_ns >= self._rest[1]:
            reading.gaps.append(Gap("waits", self._rest[0], now.time_ns, _REST))
            self._rest = None
            self._probe.attach()
        records = sorted(self._probe.records(), key=waited_ns, reverse=True)
        going_on, late = _apart(self._scan(self._probe, now))
        kept, left_out = bounded([*going_on, *records])
        waits = [(parse(record), place < len(going_on)) for place, record in kept]
        rows = [
            row for wait, is_open in waits for row in self._tasks.rows(wait, now, is_open=is_open)
        ]
        rows += self._tasks.client_rows([wait for wait, is_open in waits if is_open], now)
        # In the order of time: where a seal has to put rows in order, Arrow's functions take 10 MB.
        rows.sort(key=_time_ns)
        if left_out:
            reading.parts = (Trouble("short waits", ("waits",), SourceUnavailable(_BOUND)),)
        delays = self._count(self._probe, now, reading)
        beats = (self._tasks.late_row(parse(record), now) for _, record in bounded(late)[0])
        reading.rows = {
            "waits": rows,
            "late_beats": [row for row in beats if row is not None],
            "run_delay": delays,
        }
        self._follow_cost(self._probe, delays, now, is_well=not is_long([*going_on, *records]))
        self._read_at = now
        return reading

    def _open(self, now: Moment) -> Reading:
        """Where it fails, /proc is looked at instead; it is tried again now and then."""
        if self._refusal is None or now.monotonic_ns >= self._refusal[1]:
            try:
                self._probe = WaitProbe(self._root, self._core_count, self._threshold_ns)
                self._before, self._read_at = self._probe.cores(), now
                self._tasks.find_asleep = self._probe.asleep
                return Reading()
            except SourceUnavailable as error:
                self._refusal = error, now.monotonic_ns + _TRY_AGAIN_NS
        rows: Rows = []
        if now.monotonic_ns >= self._looked_ns + PERIOD_NS:
            self._looked_ns = now.monotonic_ns
            rows = self._standing.look(now)
        return Reading({"waits": rows}, parts=(_lower_resolution(self._refusal[0]),))

    @property
    def is_resting(self) -> bool:
        return self._rest is not None

    def wake(self) -> None:
        if self._rest is not None:
            self._rest = self._rest[0], 0

    def start_segment(self) -> None:
        """Names of cgroups and functions are looked up again: both can change."""
        self._tasks.forget()

    def close(self) -> None:
        self._tasks.close()
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    def _scan(self, probe: WaitProbe, now: Moment) -> list[bytes]:
        """With tens of thousands of threads a look takes long: then there are fewer looks. At every
        second tick while all is well: what ends between two looks leaves a record.
        """
        if now.monotonic_ns < self._scan_from_ns and self._rest is None:
            return []
        if now.monotonic_ns < self._scan_not_before_ns:
            return []
        started_ns = self._spent_ns()
        found = self._open_waits.new(probe.open_waits())
        cost_ns = self._spent_ns() - started_ns
        self._scan_not_before_ns = now.monotonic_ns + _SCANS_APART * cost_ns
        self._scan_from_ns = 0 if is_long(found) else now.monotonic_ns + _CALM_NS
        return found

    def _count(self, probe: WaitProbe, now: Moment, reading: Reading) -> Rows:
        data = probe.cores()
        before, self._before = self._before, data
        rows, lost = difference(before, data, now.time_ns)
        if lost:
            cause = "the ring of waits was full"
            reading.gaps.append(Gap("waits", self._read_at.time_ns, now.time_ns, cause, None, lost))
        return rows

    def _follow_cost(self, probe: WaitProbe, rows: Rows, now: Moment, *, is_well: bool) -> None:
        """Rests after a tick that cost others too much, if no task waited long in it."""
        if not is_well or not probe.is_attached:
            return
        elapsed_ns = max(now.monotonic_ns - self._read_at.monotonic_ns, 1)
        busiest = max((row[2] for row in rows if isinstance(row[2], int)), default=0)
        ticks = ticks_for(busiest * SWITCH_NS / elapsed_ns)
        if ticks:
            probe.detach()
            self._rest = (
                now.time_ns,
                now.monotonic_ns + round((ticks - 0.5) * self.period_s * NS_PER_S),
            )


def _lower_resolution(error: SourceUnavailable) -> Trouble:
    facts = (
        f"{error.facts}: only processes that stood still for half a second and more between two"
        f" looks at /proc, {PERIOD_NS // NS_PER_S} s apart, are seen, and not who was in the way"
    )
    return Trouble("timing of waits", Waits.tables, SourceUnavailable(facts, error.hint))


class OpenWaits:
    """Which waits that go on are news: a row when first seen, and whenever it has become twice as
    long.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[int, int]] = {}

    def new(self, records: Sequence[bytes]) -> list[bytes]:
        """Longest first."""
        known, self._known = self._known, {}
        found: list[bytes] = []
        for record in sorted(records, key=waited_ns, reverse=True):
            wait = outline(record)
            if wait.has_come:
                found.append(record)  # so this is the last word of it
                continue
            since_ns = wait.end_ns - wait.waited_ns
            before_ns, reported_ns = known.get(wait.key, (0, 0))
            # The clock of a run queue is as old as its last tick.
            is_same = abs(before_ns - since_ns) < _LONG_NS
            if not is_same or wait.waited_ns >= 2 * reported_ns:
                found.append(record)
                reported_ns = wait.waited_ns
            self._known[wait.key] = since_ns if not is_same else before_ns, reported_ns
        return found


def _time_ns(row: Row) -> int:
    return row[0] if isinstance(row[0], int) else 0


def _apart(records: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Waits, and beats that are late."""
    late = [record for record in records if is_late(record)]
    return [record for record in records if not is_late(record)], late


def bounded(records: Sequence[bytes]) -> tuple[list[tuple[int, bytes]], int]:
    """With their places, as many as may be kept of all and of each tenant, and how many are left
    out. Tenants take turns: who makes some cgroups and waits in each does not take all places.
    """
    tenants: Counter[int] = Counter()
    in_line: list[tuple[int, int]] = []
    for place, record in enumerate(records):
        owner = tenant(record)
        if tenants[owner] < _MOST_ROWS_OF_TENANT:
            in_line.append((tenants[owner], place))
            tenants[owner] += 1
    kept = sorted(in_line)[:_MOST_ROWS]
    return [(place, records[place]) for _, place in kept], len(records) - len(kept)


def is_long(records: Sequence[bytes]) -> bool:
    return any(waited_ns(record) >= _LONG_NS for record in records)


def difference(before: bytes, after: bytes, time_ns: int) -> tuple[Rows, int]:
    """Rows of `run_delay` for the cores that got a task since `before`, and how many records had no
    place.
    """
    rows: Rows = []
    lost = 0
    for cpu in range(len(after) // CORE_BYTES):
        start = cpu * CORE_BYTES
        histogram = slice(start, start + 8 * RUN_DELAY_BUCKETS)
        if after[histogram] != before[histogram]:
            counts = rises(after[histogram], before[histogram])
            rows.append((time_ns, cpu, sum(counts), _word(after, start + WORST), counts))
        lost += _word(after, start + LOST) - _word(before, start + LOST)
    return rows, lost


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")
