"""The stacks source: every core sampled all the time, drained each second into `samples`, `stacks`, `frames`, `cgroup_ledger`."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from necroscope.model.names import clean
from necroscope.model.reading import Gap, Moment, Reading, Rows, Value
from necroscope.perf_abi import records
from necroscope.sources.perf.address_space import AddressSpace
from necroscope.sources.perf.cgroup_ledger import CgroupLedger
from necroscope.sources.perf.frame_names import Lookup
from necroscope.sources.perf.loaded_modules import LoadedModules
from necroscope.sources.perf.processes import Processes
from necroscope.sources.perf.rings import TRACEPOINT, Drain, Rings
from necroscope.sources.perf.symbolizer import Symbolizer
from necroscope.symbols.task_cgroup import find_own_roots

_FORGET_CGROUPS_NS: Final = 60_000_000_000
_RELOAD_KERNEL_NS: Final = 60_000_000_000
_MISC_OFFSET: Final = 4
_BODY_OFFSET: Final = records.HEADER.size
_SAMPLE: Final = records.SAMPLE
_RING_FULL: Final = "ring full: the recorder was not run in time"


@dataclass(frozen=True, slots=True)
class SeenTask:
    """A thread seen on a core in the last drain, with how often, its commonest stack and the system call argument seen there."""

    pid: int
    tid: int
    comm: str
    cgroup: str | None
    samples: int
    stack: int
    first_argument: int | None


@dataclass(slots=True)
class _Seen:
    rows: Rows = field(default_factory=list)
    arguments: list[int | None] = field(default_factory=list)


class Sampler:
    """Follows the `Source` protocol. `offset_ns` turns the samples' monotonic time into the recording's time."""

    name = "stacks"
    tables: tuple[str, ...] = ("samples", "stacks", "frames", "cgroup_ledger")

    def __init__(self, rings: Rings, lookup: Lookup, ledger: CgroupLedger | None, root: Path, period_s: float = 1.0) -> None:
        self.period_s = period_s
        self.rings = rings
        self.symbolizer = Symbolizer(lookup)
        self.processes = Processes(root / "proc", find_own_roots(root / "proc"))
        self.offset_ns = 0
        self.idle_dropped = 0
        self._ledger = ledger
        self._last_drain_ns: int | None = None
        self._cgroups_forgotten_ns = 0
        self._modules = LoadedModules(root / "proc")
        self._kernel_changed = False
        self._reload_allowed_ns = 0
        self._seen = _Seen()
        self._unsampled_since_ns: dict[int, int] = {}
        rings.idle_addresses = self.symbolizer.idle_addresses

    def read(self, now: Moment) -> Reading:
        self.offset_ns = now.time_ns - now.monotonic_ns
        if self.symbolizer.names.is_loading:
            return Reading()  # the rings hold many seconds, and the first names take one to load
        drain = self.rings.drain(now.monotonic_ns)
        reading = Reading()
        self._note_interruptions(now, reading)
        ledger_rows: Rows = []
        samples = self._replay(drain, ledger_rows)
        self.idle_dropped += drain.idle
        frames, stacks = self.symbolizer.interned.take_rows()
        for name, rows in (("frames", frames), ("stacks", stacks), ("samples", samples), ("cgroup_ledger", ledger_rows)):
            if rows:
                reading.rows[name] = rows
        self._note_losses(drain, now, reading)
        self._tidy(now)
        self._last_drain_ns = now.time_ns
        return reading

    def seen_on(self, cpu: int) -> list[SeenTask]:
        """Who the last drain saw on this core, most seen first."""
        tally: Counter[Value] = Counter()
        stacks: dict[Value, Counter[Value]] = {}
        last: dict[tuple[Value, Value], int] = {}
        for index, row in enumerate(self._seen.rows):
            if row[1] == cpu:
                tid, stack = row[3], row[6]
                tally[tid] += 1
                stacks.setdefault(tid, Counter())[stack] += 1
                last[tid, stack] = index
        return [self._seen_task(last[tid, stacks[tid].most_common(1)[0][0]], count) for tid, count in tally.most_common()]

    def start_segment(self) -> None:
        """Numbers of stacks and frames begin again; call it right after a read, when nothing is half written."""
        self.symbolizer.start_segment(self.processes.spaces())
        self._seen = _Seen()  # its stack numbers mean nothing any more

    def close(self) -> None:
        self.rings.close()

    def _tidy(self, now: Moment) -> None:
        """Forget what ended or may have changed, now that no sample of this drain needs it."""
        self.processes.forget_exited()
        self.symbolizer.bound(self.processes.spaces)
        if now.monotonic_ns - self._cgroups_forgotten_ns > _FORGET_CGROUPS_NS:
            self._cgroups_forgotten_ns = now.monotonic_ns
            self.processes.forget_cgroups()
        if now.monotonic_ns - self._reload_allowed_ns > _RELOAD_KERNEL_NS:
            self._reload_allowed_ns = now.monotonic_ns
            self.symbolizer.names.may_reload = True
            # No record tells of modules, and before Linux 5.1 none of BPF programs either: they may be others by now.
            self._kernel_changed |= self._modules.have_changed() or not self.rings.tells_kernel_code
        if self._kernel_changed:
            self._kernel_changed = False
            self.symbolizer.note_kernel_change(self.processes.spaces())

    def _seen_task(self, index: int, count: int) -> SeenTask:
        _, _, pid, tid, comm, cgroup, stack, _ = self._seen.rows[index]
        assert isinstance(pid, int)
        assert isinstance(tid, int)
        assert isinstance(comm, str)
        assert isinstance(stack, int)
        assert cgroup is None or isinstance(cgroup, str)
        return SeenTask(pid, tid, comm, cgroup, count, stack, self._seen.arguments[index])

    def _replay(self, drain: Drain, ledger_rows: Rows) -> Rows:
        """Walk the records in time order, so that each sample is named as its task was called at that moment."""
        processes, number_of, offset_ns = self.processes, self.symbolizer.number, self.offset_ns
        known_task = processes.tasks.get
        seen = self._seen = _Seen()
        add_row, add_argument = seen.rows.append, seen.arguments.append
        unknown, of_idle_task = [], []
        for time_ns, cpu, kind, pid, tid, body, extra in drain.records:
            if kind == _SAMPLE:
                space, comm, cgroup = known_task(tid) or processes.task(pid, tid)
                number = space.stacks.get(body)
                if number is None:
                    number = number_of(body, pid, space)
                if number is None:
                    unknown.append((len(seen.arguments), (body, pid, space)))
                if pid == 0:
                    of_idle_task.append((len(seen.arguments), body[8:16]))
                add_row((time_ns + offset_ns, cpu, pid, tid, comm, cgroup, number, 1))
                add_argument(extra)
            elif kind == TRACEPOINT:
                tracepoint_id = self.rings.tracepoint_of.get(extra or 0)
                if self._ledger is not None and tracepoint_id is not None:
                    ledger_rows.append(self._ledger.row(time_ns + offset_ns, tracepoint_id, body))
            elif kind == records.KSYMBOL:
                self._note_kernel_code(body)
            else:
                processes.apply(kind, int.from_bytes(body[_MISC_OFFSET : _MISC_OFFSET + 2], "little"), body)
        if unknown:
            self._number(unknown)
        if of_idle_task:
            self._drop_idle(of_idle_task)
        return seen.rows

    def _note_kernel_code(self, record: bytes) -> None:
        start, length, _, flags = records.KSYMBOL_BODY.unpack_from(record, _BODY_OFFSET)
        name = record[_BODY_OFFSET + records.KSYMBOL_BODY.size :].partition(b"\0")[0]
        if flags & records.KSYMBOL_GONE:
            self.symbolizer.names.unload_kernel_code(start, length)
        else:
            self.symbolizer.names.load_kernel_code(start, length, clean(name))
        self._kernel_changed = True

    def _number(self, unknown: list[tuple[int, tuple[bytes, int, AddressSpace]]]) -> None:
        """Fill in the stacks that were not known."""
        rows = self._seen.rows
        numbers = self.symbolizer.resolve([chain for _, chain in unknown])
        for (index, _), number in zip(unknown, numbers, strict=True):
            rows[index] = (*rows[index][:6], number, 1)

    def _drop_idle(self, of_idle_task: list[tuple[int, bytes]]) -> None:
        """Samples found to be idle only now, by a name just learnt."""
        seen, idle = self._seen, self.symbolizer.idle_addresses
        dropped = {index for index, innermost in of_idle_task if innermost in idle}
        if dropped:
            self.idle_dropped += len(dropped)
            seen.rows[:] = [row for index, row in enumerate(seen.rows) if index not in dropped]
            seen.arguments = [argument for index, argument in enumerate(seen.arguments) if index not in dropped]

    def _note_losses(self, drain: Drain, now: Moment, reading: Reading) -> None:
        since = self._last_drain_ns or now.time_ns
        for cpu, lost in drain.lost.items():
            reading.gaps.append(Gap("samples", since, now.time_ns, _RING_FULL, cpu, lost))
            if self._ledger is not None:  # of the lost records some may have been the ledger's
                reading.gaps.append(Gap("cgroup_ledger", since, now.time_ns, _RING_FULL, cpu))
        if drain.lost:
            self.processes.forget_all()
        for cpu in drain.throttled:
            reading.gaps.append(Gap("samples", since, now.time_ns, "the kernel throttled sampling", cpu))

    def _note_interruptions(self, now: Moment, reading: Reading) -> None:
        """A gap when a core's ring was closed, and when it is open again one over the whole time it was not.

        What was started or renamed on the core before its ring was open again left no record: all tasks are read anew.
        """
        since = self._last_drain_ns or now.time_ns
        for cpu in sorted(self.rings.take_interrupted() - self._unsampled_since_ns.keys()):
            self._unsampled_since_ns[cpu] = since
            reading.gaps.append(Gap("samples", since, now.time_ns, f"cpu {cpu} went offline", cpu))
        for cpu in sorted(self._unsampled_since_ns.keys() & self.rings.cpus):
            self.processes.forget_all()
            reading.gaps.append(Gap("samples", self._unsampled_since_ns.pop(cpu), now.time_ns, f"cpu {cpu} was offline", cpu))
