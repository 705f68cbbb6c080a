"""The stacks source: every core sampled all the time, into `samples`, `stacks`, `frames` and
`cgroup_ledger`.

Its rings hold many seconds. The recorder empties them before each flush, and when it looks closer
at a core.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.model.allocator import trim_heap
from necroscope.model.frame import Frame
from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.model.reading import Gap, Moment, Reading, Source, Trouble
from necroscope.model.units import NS_PER_S
from necroscope.perf_abi import records
from necroscope.profile.core import PassedOn
from necroscope.profile.live import LiveLookup, LiveProfile, Turn
from necroscope.sources.perf.cgroup_ledger import CgroupLedger
from necroscope.sources.perf.idle_filter import IdleFilter, make_idle_filter
from necroscope.sources.perf.rings import (
    SAMPLING_LAYOUT,
    TRACEPOINT_ID_OFFSET,
    TRACEPOINT_LAYOUT,
    TRACEPOINT_RAW_OFFSET,
    Rings,
)
from necroscope.sources.perf.seen_tasks import SeenTask, SeenTasks
from necroscope.symbols.task_cgroup import find_own_roots

# Which modules the kernel has: /proc/modules (kernel/module), because perf has no records of
# one that comes or goes.


class LoadedModules:
    """Asked now and then whether they are still the same."""

    def __init__(self, proc: Path) -> None:
        self._file = proc / "modules"
        self._known = self._read()

    def have_changed(self) -> bool:
        """Since the last call."""
        before, self._known = self._known, self._read()
        return self._known != before

    def _read(self) -> frozenset[tuple[bytes, bytes]]:
        """Name and address: one that was loaded again may lie elsewhere. The count of users between
        them changes all the time.
        """
        try:
            data = self._file.read_bytes()
        except OSError:  # a kernel without modules
            return frozenset()
        lines = (line.split() for line in data.splitlines())
        return frozenset((fields[0], fields[5]) for fields in lines if len(fields) > 5)


_FORGET_CGROUPS_NS: Final = 60 * NS_PER_S
_RELOAD_KERNEL_NS: Final = 60 * NS_PER_S
_REPORT_BOUNDED_NS: Final = 60 * NS_PER_S
_MOST_PROCESSES: Final = 100_000
_MOST_BOUNDED: Final = 1_000
_BODY_OFFSET: Final = records.HEADER.size
_RING_FULL: Final = "ring full: the recorder was not run in time"
_TASK_RING_FULL: Final = "too many tasks started, ended or mapped files: some frames have no names"
_NAMES_LOST: Final = (
    "the lookup process hung, ended or could not start: functions that were asked about then have"
    " no name"
)


class LookupProcess(LiveLookup, Protocol):
    @property
    def restarts(self) -> int: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class _BoundCost:
    """What its bound has cost a cgroup since it was last reported."""

    since_ns: int
    frames: int = 0
    next_report_ns: int = 0


class Sampler(Source):
    """Owns its lookup process."""

    name = "stacks"
    tables: tuple[str, ...] = ("samples", "stacks", "frames", "cgroup_ledger")
    is_buffered = True

    def __init__(
        self, rings: Rings, lookup: LookupProcess, ledger: CgroupLedger | None, root: Path
    ) -> None:
        self.rings = rings
        self._lookup = lookup
        self._lookup_restarts = 0
        self._idle_reported = 0
        self.profile = LiveProfile(lookup, root / "proc", find_own_roots(root / "proc"))
        self._sampling = self.profile.core.add_event(SAMPLING_LAYOUT)
        self._tracepoint = self.profile.core.add_event(TRACEPOINT_LAYOUT, is_passed_on=True)
        self._ids: set[int] = set()
        self._seen = SeenTasks(self.profile.cgroup_path)
        self._idle_filter: IdleFilter | None = None
        self._is_filter_used = False
        self._ledger = ledger
        self._last_drain_ns: int | None = None
        self._cgroups_forgotten_ns = 0
        self._modules = LoadedModules(root / "proc")
        self._reload_allowed_ns = 0
        self._unsampled_since_ns: dict[int, int] = {}
        self._refused = 0
        self._bounded: dict[str, _BoundCost] = {}

    @property
    def idle_dropped(self) -> int:
        """Here, and by the kernel if it filters them."""
        return int(self.profile.core.view.idle) + (
            self._idle_filter.dropped() if self._idle_filter is not None else 0
        )

    def filter_idle(self, cpus: int) -> None:
        """Let the kernel drop what is idle, where it can and while that hides nothing else; `cpus`
        are the possible ones. Without it the same is dropped here, which costs CPU only.
        """
        symbols = self.profile.kernel.symbols
        ranges = symbols.ranges(IDLE_FUNCTIONS) if symbols is not None else ()
        self._idle_filter = make_idle_filter(ranges, cpus)
        self._choose_filter()

    def _choose_filter(self) -> None:
        """Call it whenever a BPF program came or went."""
        if self._idle_filter is None:
            return
        is_used = self._idle_filter.is_harmless()
        if is_used == self._is_filter_used:
            return
        try:
            self.rings.use_idle_filter(self._idle_filter if is_used else None)
            self._is_filter_used = is_used
        except NecroscopeError:
            self.rings.use_idle_filter(None)
            self._idle_filter.close()
            self._idle_filter = None

    @property
    def wants_new_segment(self) -> bool:
        return self.profile.is_full

    def descriptor(self) -> int:
        return self.rings.fileno()

    def read(self, now: Moment) -> Reading:
        reading = Reading()
        if not self.profile.is_loading:
            self._drain(now, reading)
        self.rings.close_hung_up()
        return reading

    def finish(self, now: Moment) -> Reading:
        """So that nothing sampled is left in the rings."""
        return self.read(now)

    def _drain(self, now: Moment, reading: Reading) -> None:
        self._note_interruptions(now, reading)
        self._register_events()
        turn = self.profile.turn(
            self.rings.native(), now.monotonic_ns, now.time_ns - now.monotonic_ns
        )
        self._seen.add(self.profile.core, now.time_ns)
        for name, columns in (("stacks", turn.stacks), ("samples", turn.samples)):
            if columns is not None:
                reading.columns[name] = columns
        if turn.frames:
            reading.rows["frames"] = turn.frames
        since = self._last_drain_ns or now.time_ns
        self._take_passed_on(turn, now, since, reading)
        if turn.has_new_kernel_code:
            self._choose_filter()
        self._note_bounds(turn, now, since, reading)
        self._note_lost_names(now, since, reading)
        self._tidy(now)
        idle, self._idle_reported = self._idle_reported, self.idle_dropped
        reading.idle_samples = self._idle_reported - idle
        self._last_drain_ns = now.time_ns

    def seen_on(self, cpu: int, now_ns: int) -> list[SeenTask]:
        """Who the last turns saw on this core, most seen first."""
        return self._seen.on(cpu, now_ns)

    def frames_of(self, stack: int) -> list[Frame]:
        """The frames of a stack of this segment, innermost first."""
        return self.profile.names.stack(stack)

    def start_segment(self) -> None:
        """Numbers of stacks and frames begin again; call it right after a read, when nothing is
        half written.
        """
        self.profile.start_segment()
        trim_heap()  # the segment that ends is sealed now, and that is when we take the most memory
        self._seen.clear()

    def close(self) -> None:
        self.rings.close()
        if self._idle_filter is not None:
            self._idle_filter.close()
        self.profile.close()
        self._lookup.close()

    def _register_events(self) -> None:
        """A core that came back has events with other ids."""
        ids = {**dict.fromkeys(self.rings.sampling_ids.values(), self._sampling)}
        ids |= dict.fromkeys(self.rings.tracepoint_of, self._tracepoint)
        for event_id in ids.keys() - self._ids:
            self.profile.core.add_id(event_id, ids[event_id])
        self._ids |= ids.keys()

    def _take_passed_on(self, turn: Turn, now: Moment, since_ns: int, reading: Reading) -> None:
        offset_ns = now.time_ns - now.monotonic_ns
        lost_samples: Counter[int] = Counter()
        lost_tasks: Counter[int] = Counter()
        throttled = set()
        for passed in turn.passed_on:
            kind = records.HEADER.unpack_from(passed.record)[0]
            if kind == records.SAMPLE:
                self._add_to_ledger(passed, offset_ns, reading)
            elif kind == records.LOST:
                event_id, count = records.LOST_BODY.unpack_from(passed.record, _BODY_OFFSET)
                is_sample = event_id in self.rings.sampling_ids.values()
                (lost_samples if is_sample else lost_tasks)[passed.cpu] += count
            elif kind == records.THROTTLE:
                throttled.add(passed.cpu)
        for cpu, count in lost_samples.items():
            reading.gaps.append(Gap("samples", since_ns, now.time_ns, _RING_FULL, cpu, count))
        for cpu, count in lost_tasks.items():
            reading.gaps.append(Gap("frames", since_ns, now.time_ns, _TASK_RING_FULL, cpu, count))
            if self._ledger is not None:  # of the lost records some may have been the ledger's
                reading.gaps.append(Gap("cgroup_ledger", since_ns, now.time_ns, _RING_FULL, cpu))
        if lost_tasks:  # some may have named a task, others code of the kernel
            self.profile.core.forget_tasks()
            self.profile.kernel.note_change()
        for cpu in sorted(throttled):
            reading.gaps.append(
                Gap("samples", since_ns, now.time_ns, "the kernel throttled sampling", cpu)
            )

    def _add_to_ledger(self, passed: PassedOn, offset_ns: int, reading: Reading) -> None:
        event_id = int.from_bytes(
            passed.record[TRACEPOINT_ID_OFFSET : TRACEPOINT_ID_OFFSET + 8], "little"
        )
        tracepoint_id = self.rings.tracepoint_of.get(event_id)
        if self._ledger is not None and tracepoint_id is not None:
            row = self._ledger.row(
                passed.time_ns + offset_ns, tracepoint_id, passed.record[TRACEPOINT_RAW_OFFSET:]
            )
            reading.rows.setdefault("cgroup_ledger", []).append(row)

    def _note_bounds(self, turn: Turn, now: Moment, since_ns: int, reading: Reading) -> None:
        """What a limit cost: rows at once, frames of a cgroup once per minute, because that may go
        on for days.
        """
        refused, self._refused = self._refused, int(self.profile.core.view.refused)
        if refused != self._refused:
            cause = "the profile has reached its memory limit"
            reading.gaps.append(
                Gap("samples", since_ns, now.time_ns, cause, None, self._refused - refused)
            )
        if turn.unasked:
            cause = (
                f"{turn.unasked} processes were seen for the first time at once: their functions"
                " are shown as [bounded]"
            )
            reading.gaps.append(Gap("frames", since_ns, now.time_ns, cause, None, turn.unasked))
        for cgroup, count in turn.bounded.items():
            bounded = self._bounded.setdefault(cgroup, _BoundCost(since_ns))
            bounded.frames += count
            if now.time_ns >= bounded.next_report_ns:
                cause = (
                    f"cgroup {cgroup or 'unknown'} has used up its share of names and stacks: its"
                    " frames are [bounded]"
                )
                reading.gaps.append(
                    Gap("frames", bounded.since_ns, now.time_ns, cause, None, bounded.frames)
                )
                self._bounded[cgroup] = _BoundCost(
                    now.time_ns, next_report_ns=now.time_ns + _REPORT_BOUNDED_NS
                )
        while len(self._bounded) > _MOST_BOUNDED:
            del self._bounded[next(iter(self._bounded))]

    def _note_lost_names(self, now: Moment, since_ns: int, reading: Reading) -> None:
        """The kernel's, which are known to be hidden once they were asked for, and those that no
        process was there to answer.
        """
        hidden = self.profile.kernel.hidden
        if hidden is not None:
            trouble = Trouble("kernel symbols", ("frames",), SourceUnavailable(hidden))
            reading.parts = (trouble,)
        if self._lookup.restarts != self._lookup_restarts:
            self._lookup_restarts = self._lookup.restarts
            reading.gaps.append(Gap("frames", since_ns, now.time_ns, _NAMES_LOST))

    def _tidy(self, now: Moment) -> None:
        """Forget what may have changed, now that no sample of this turn needs it."""
        core = self.profile.core
        if core.view.processes > _MOST_PROCESSES:
            core.forget_tasks()
        if now.monotonic_ns - self._cgroups_forgotten_ns > _FORGET_CGROUPS_NS:
            self._cgroups_forgotten_ns = now.monotonic_ns
            core.forget_cgroups()
        if now.monotonic_ns - self._reload_allowed_ns > _RELOAD_KERNEL_NS:
            self._reload_allowed_ns = now.monotonic_ns
            self.profile.kernel.may_reload = True
            self._choose_filter()
            # No record reports modules, and before Linux 5.1 none of BPF programs either: they may
            # be others by now.
            if self._modules.have_changed() or not self.rings.tells_kernel_code:
                self.profile.kernel.note_change()

    def _note_interruptions(self, now: Moment, reading: Reading) -> None:
        """A gap when a core's ring was closed, and when it is open again one over the whole time it
        was not.

        What was started or renamed on the core before its ring was open again left no record: all
        tasks are read again.
        """
        since = self._last_drain_ns or now.time_ns
        for cpu in sorted(self.rings.take_interrupted() - self._unsampled_since_ns.keys()):
            self._unsampled_since_ns[cpu] = since
            reading.gaps.append(Gap("samples", since, now.time_ns, f"cpu {cpu} went offline", cpu))
        for cpu in sorted(self._unsampled_since_ns.keys() & self.rings.cpus):
            self.profile.core.forget_tasks()
            reading.gaps.append(
                Gap(
                    "samples",
                    self._unsampled_since_ns.pop(cpu),
                    now.time_ns,
                    f"cpu {cpu} was offline",
                    cpu,
                )
            )
