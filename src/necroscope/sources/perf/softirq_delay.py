"""How long raised softirqs wait for their handler, by core and vector: two small BPF programs and
their maps.

At irq:softirq_raise the time is kept unless an older raise still waits; at irq:softirq_entry the
wait goes into a histogram of powers of two. A raise that never got its handler is seen too, because
its time is read with the rest: a stall in progress. What it costs each softirq is in
docs/benchmarks.md.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.model.reading import Gap, Moment, Reading, Rows, Source
from necroscope.model.tables import SOFTIRQ_DELAY_BUCKETS, SOFTIRQ_VECTORS
from necroscope.model.units import NS_PER_S
from necroscope.sources.perf.bpf import (
    MapValue,
    PerCpuValue,
    RawTracepointProgram,
    TracepointProgram,
    allow_locked_memory,
)
from necroscope.sources.perf.bucket_counts import rises
from necroscope.sources.perf.probe_rest import ticks_of_rest
from necroscope.sources.perf.softirq_programs import (
    CORE_BYTES,
    VECTOR_WORDS,
    VECTORS,
    WORST_BYTES,
    Maps,
    entry_program,
    raise_program,
)
from necroscope.sources.perf.tracefs import read_tracepoints

_RAISE: Final = "softirq_raise"
_ENTRY: Final = "softirq_entry"
_REST: Final = (
    "too many softirqs: timing them all would take over 1 % of a core, and none waited long: not"
    " measured"
)
_VECTOR_BYTES: Final = 8 * VECTOR_WORDS
_HISTOGRAM_END: Final = 8 * (1 + SOFTIRQ_DELAY_BUCKETS)
# A raise is normally served within microseconds; younger ones than this are just passing by.
_PENDING_NS: Final = 1_000_000


class SoftirqDelay(Source):
    """Opens at the first read."""

    name = "softirq delay"
    tables: tuple[str, ...] = ("softirq_delay",)

    def __init__(self, root: Path, possible_cpus: Sequence[int], period_s: float = 1.0) -> None:
        self.period_s = period_s
        self._root = root
        self._possible_cpus = tuple(possible_cpus)
        self._cpus: Sequence[int] = ()
        self._delays: MapValue | None = None
        self._worst: MapValue | None = None
        self._programs: list[TracepointProgram | RawTracepointProgram] = []
        self._before = b""
        self._read_ns = 0
        self._rest: tuple[Moment, int] | None = None

    def read(self, now: Moment) -> Reading:
        if self._rest is not None and now.monotonic_ns < self._rest[1]:
            return Reading()
        if self._delays is None or self._worst is None:
            self._open()
            self._read_ns = now.monotonic_ns
            return Reading(gaps=self._end_rest(now))
        rows = self._rows(self._delays, self._worst, now)
        gaps = self._begin_rest(now, ticks_of_rest(rows, now.monotonic_ns - self._read_ns))
        self._read_ns = now.monotonic_ns
        return Reading({"softirq_delay": rows} if rows else {}, gaps)

    @property
    def is_resting(self) -> bool:
        return self._rest is not None

    def wake(self) -> None:
        if self._rest is not None:
            self._rest = self._rest[0], 0

    def _rows(self, delays: MapValue, waits: MapValue, now: Moment) -> Rows:
        worst = memoryview(waits.read()).cast("Q")
        # A wait that ends between the read and the clearing is still in the histogram; one that
        # ends right after has its worst time in the next row.
        waits.clear()
        data = delays.read()
        before, self._before = self._before, data
        return difference(before, data, worst, now, self._cpus)

    def _begin_rest(self, now: Moment, ticks: int) -> list[Gap]:
        """A gap already at the beginning, in case no recorder is there to report the end."""
        if not ticks:
            return []
        self.close()
        # Half a tick less, because a tick is never exactly one.
        self._rest = now, now.monotonic_ns + round((ticks - 0.5) * self.period_s * NS_PER_S)
        return [Gap("softirq_delay", now.time_ns, now.time_ns, _REST)]

    def _end_rest(self, now: Moment) -> list[Gap]:
        rest, self._rest = self._rest, None
        return (
            [Gap("softirq_delay", rest[0].time_ns, now.time_ns, _REST)] if rest is not None else []
        )

    def close(self) -> None:
        for program in self._programs:
            program.close()
        for value in (self._delays, self._worst):
            if value is not None:
                value.close()
        self._programs, self._delays, self._worst = [], None, None

    def _open(self) -> None:
        allow_locked_memory()
        try:
            try:
                self._before = self._attach_raw()
            except OSError:  # an older kernel; a refusal is no OSError and would be the same below
                self.close()
                self._before = self._attach_by_perf()
        except (OSError, NecroscopeError) as error:
            self.close()
            facts = (
                error.facts
                if isinstance(error, NecroscopeError)
                else f"cannot load BPF programs: {error.strerror}"
            )
            hint = "frozen /proc/softirqs and starving ksoftirqd threads are still seen"
            raise SourceUnavailable(
                facts, f"{getattr(error, 'hint', '')}; {hint}".lstrip("; ")
            ) from None

    def _attach_raw(self) -> bytes:
        cores = max(self._possible_cpus) + 1
        self._cpus = range(cores)
        self._delays = delays = MapValue(CORE_BYTES * cores)
        self._worst = worst = MapValue(WORST_BYTES * cores)
        maps = Maps(delays.descriptor, worst.descriptor, cores)
        self._programs.append(RawTracepointProgram(entry_program(maps), _ENTRY))
        self._programs.append(RawTracepointProgram(raise_program(maps), _RAISE))
        return delays.read()

    def _attach_by_perf(self) -> bytes:
        # The map's n-th value is that of the n-th possible core, and their numbers may have holes.
        self._cpus, cores = self._possible_cpus, len(self._possible_cpus)
        tracepoints = read_tracepoints((f"irq:{_ENTRY}", f"irq:{_RAISE}"), self._root)
        self._delays = delays = PerCpuValue(CORE_BYTES, cores)
        self._worst = worst = PerCpuValue(WORST_BYTES, cores)
        maps = Maps(delays.descriptor, worst.descriptor)
        for tracepoint, program in zip(
            tracepoints.values(), (entry_program, raise_program), strict=True
        ):
            code = program(maps, tracepoint.fields["vec"].offset)
            self._programs.append(TracepointProgram(code, tracepoint.id))
        return delays.read()


def difference(
    before: bytes, after: bytes, worst: memoryview, now: Moment, cpus: Sequence[int] = ()
) -> Rows:
    """Rows for the cores and vectors in which a softirq was entered, or a raise waits, since
    `before`.

    `cpus` are the numbers of the cores in the order of the map; by default they are counted from 0.
    """
    rows: Rows = []
    raised = memoryview(after).cast("Q")[::VECTOR_WORDS].tolist()
    for place, cpu in enumerate(cpus or range(len(after) // CORE_BYTES)):
        start, first = place * CORE_BYTES, place * VECTORS
        raised_ns, worst_ns = (
            raised[first : first + VECTORS],
            worst[first : first + VECTORS].tolist(),
        )
        is_same = after[start : start + CORE_BYTES] == before[start : start + CORE_BYTES]
        if is_same and not any(raised_ns) and not any(worst_ns):
            continue
        for vector, waited_ns, since_ns in zip(SOFTIRQ_VECTORS, worst_ns, raised_ns, strict=True):
            pending_ns = now.monotonic_ns - since_ns if since_ns else 0
            if pending_ns < _PENDING_NS:
                pending_ns = 0
            histogram = slice(start + 8, start + _HISTOGRAM_END)
            counts, counted = after[histogram], before[histogram]
            start += _VECTOR_BYTES
            if waited_ns or pending_ns or counts != counted:
                new = rises(counts, counted)
                rows.append((now.time_ns, cpu, vector, sum(new), waited_ns, pending_ns, new))
    return rows
