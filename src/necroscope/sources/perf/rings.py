"""The rings of all cores: opens the sampling event on each, follows CPU hot-plug, and hands out records in time order.

Tracepoint events are directed into the same rings (PERF_EVENT_IOC_SET_OUTPUT), so that one drain sees everything that happened on
a core in its order. The hot loop is `_scan`: about half a microsecond a record. In an exec storm most processes come and go
between two drains without a sample: their records are passed over unread (see `_TaskRecords`).
"""

import errno
import os
import struct
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fcntl import ioctl
from operator import itemgetter
from typing import Final

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.model.units import NS_PER_S
from necroscope.perf_abi import event_attr as abi
from necroscope.perf_abi import records
from necroscope.sources.perf.event import enable, event_id, open_event
from necroscope.sources.perf.ring import PAGE_BYTES, Ring

# Two MiB a core hold 100 s of 97 Hz, or two seconds of an exec storm; many cores share 24 MiB (256 KiB each of 96, 12 s). The
# watermark wakes us when a ring is half full.
_RING_BYTES: Final = 2 << 20
_BYTES_PER_HZ: Final = 1 << 10
_ALL_RINGS_BYTES: Final = 24 << 20
_LEAST_PAGES: Final = max(1, (64 << 10) // PAGE_BYTES)

_SAMPLE_TYPE: Final = (
    abi.SAMPLE_IDENTIFIER | abi.SAMPLE_TID | abi.SAMPLE_TIME | abi.SAMPLE_CPU | abi.SAMPLE_CALLCHAIN | abi.SAMPLE_REGS_USER
)
_TRACEPOINT_SAMPLE_TYPE: Final = abi.SAMPLE_IDENTIFIER | abi.SAMPLE_TID | abi.SAMPLE_TIME | abi.SAMPLE_CPU | abi.SAMPLE_RAW
_COMMON_FLAGS: Final = abi.FLAG_DISABLED | abi.FLAG_WATERMARK | abi.FLAG_SAMPLE_ID_ALL | abi.FLAG_USE_CLOCKID
_TASK_FLAGS: Final = abi.FLAG_MMAP | abi.FLAG_MMAP2 | abi.FLAG_COMM | abi.FLAG_COMM_EXEC | abi.FLAG_TASK

# Type, misc, size, and the first 16 bytes after them. Of a sample these are id, pid, tid; a task that has left the pid table has
# pid and tid -1. Of a task's records they begin with the pid; those of FORK and EXIT are pid, parent, tid, parent's tid.
_HEAD: Final = struct.Struct("<IHHQii").unpack_from
_HEAD_BYTES: Final = 24
_HEADER: Final = records.HEADER.unpack_from
_HEADER_BYTES: Final = records.HEADER.size
_PID_MASK: Final = 0xFFFF_FFFF
# Of a sample: time, cpu, reserved, callchain length (or raw size).
_SAMPLE_HEAD: Final = struct.Struct("<QIIQ").unpack_from
_SAMPLE_HEAD_OFFSET: Final = 24
_U64: Final = struct.Struct("<Q").unpack_from
_SAMPLE: Final = records.SAMPLE
_FORK: Final = records.FORK
_EXIT: Final = records.EXIT
_TASK_KINDS: Final = frozenset((records.MMAP2, records.COMM, records.FORK, records.EXIT))
_CHAIN_OFFSET: Final = 48
_RAW_OFFSET: Final = 44  # the raw size is 32 bits wide, the data follows it at once
_TIME_FROM_END: Final = 24  # the trailing sample id of other records ends with time, cpu, identifier
_LEAST_TASK_BYTES: Final = _HEAD_BYTES + _TIME_FROM_END
_CPUMODE: Final = records.MISC_CPUMODE
_KERNEL: Final = records.MISC_KERNEL

# (time_ns, cpu, kind, pid, tid, body, first_argument): of a sample the body is its callchain, of other records all their bytes.
Record = tuple[int, int, int, int, int, bytes, int | None]
TRACEPOINT: Final = -1
_SOFTWARE_CLOCK: Final = "cpu-clock"
_TIME: Final = itemgetter(0)


@dataclass(slots=True)
class Drain:
    """What one drain found: records in time order, and by core how many the kernel had to drop or throttle."""

    records: list[Record] = field(default_factory=list)
    idle: int = 0
    lost: dict[int, int] = field(default_factory=dict)
    throttled: dict[int, int] = field(default_factory=dict)


class _TaskRecords:
    """Where the records of processes lie in what was drained, and which processes nobody will ever ask about."""

    def __init__(self, until_ns: int) -> None:
        self.until_ns = until_ns
        self._rings: list[tuple[bytes, int, list[tuple[int, int]]]] = []
        self.sampled: set[int] = set()
        self.forked: list[int] = []
        self.exited: set[int] = set()
        self.parents: set[int] = set()

    def places(self, data: bytes, cpu: int) -> list[tuple[int, int]]:
        """To be filled with the pid and the position of each record in this data."""
        places: list[tuple[int, int]] = []
        self._rings.append((data, cpu, places))
        return places

    def unseen(self) -> set[int]:
        """Began and ended in this drain, were not sampled, and made neither thread nor child that goes by their name.

        Of one that ended after `until_ns` a sample may still lie in a ring that was emptied before.
        """
        if len(set(self.forked)) != len(self.forked):
            return set()  # a number was given twice, and the second owner may live
        return self.exited.intersection(self.forked) - self.sampled - self.parents

    def take(self) -> Iterator[Record]:
        """The records of all others."""
        unseen = self.unseen()
        for data, cpu, places in self._rings:
            for pid, position in places:
                if pid not in unseen:
                    kind, _, size = _HEADER(data, position)
                    end = position + size
                    yield _U64(data, end - _TIME_FROM_END)[0], cpu, kind, 0, 0, data[position:end], None


class Rings:
    """Sampling rings of the given cores. `idle_addresses` holds the packed instruction addresses known to be idle.

    `tells_kernel_code`: the kernel writes a record when a BPF program comes or goes.
    """

    def __init__(self, hz: int, tracepoint_ids: Sequence[int] = ()) -> None:
        self.hz = hz
        self.event_name = ""
        self.tells_kernel_code = True
        self.idle_addresses: set[bytes] = set()
        self._tracepoint_ids = tuple(tracepoint_ids)
        self._rings: dict[int, Ring] = {}
        self._sampling_id: dict[int, int] = {}
        self._event_of: dict[int, str] = {}
        self._tracepoint_descriptors: dict[int, list[int]] = {}
        self.tracepoint_of: dict[int, int] = {}
        self._later: list[Record] = []
        self._interrupted: set[int] = set()

    @property
    def cpus(self) -> frozenset[int]:
        return frozenset(self._rings)

    def descriptors(self) -> list[int]:
        """To be polled: one becomes readable when its ring is half full."""
        return [ring.descriptor for ring in self._rings.values()]

    def follow(self, cpus: Iterable[int], expected_cpus: int) -> None:
        """Open rings of cores that came, close those of cores that went. The first refusal is raised, after all were tried."""
        wanted = frozenset(cpus)
        for cpu in self.cpus - wanted:
            self._close_cpu(cpu)
        refusals: list[NecroscopeError] = []
        for cpu in sorted(wanted - self.cpus):
            try:
                self._open_cpu(cpu, _ring_pages(expected_cpus, self.hz))
            except NecroscopeError as error:
                refusals.append(error)
            except OSError as error:
                if error.errno != errno.ENODEV:  # went offline between the two reads
                    hint = (
                        f"{self.hz} Hz may be above sysctl kernel.perf_event_max_sample_rate"
                        if error.errno == errno.EINVAL
                        else ""
                    )
                    refusals.append(SourceUnavailable(f"cannot sample core {cpu}: {error.strerror}", hint))
        if refusals:
            raise refusals[0]

    def close_descriptors(self, descriptors: Collection[int]) -> None:
        for cpu in [cpu for cpu, ring in self._rings.items() if ring.descriptor in descriptors]:
            self._close_cpu(cpu)

    def take_interrupted(self) -> set[int]:
        """Cores whose ring was closed since the last call, also if it is open again."""
        interrupted, self._interrupted = self._interrupted, set()
        return interrupted

    def set_hz(self, hz: int) -> None:
        """The software clock forgets at its opening that it was given a frequency, and takes nanoseconds (kernel/events/core.c).

        Given hertz it would fire every ten microseconds, the least it can.
        """
        self.hz = hz
        for cpu, ring in self._rings.items():
            value = NS_PER_S // hz if self._event_of[cpu] == _SOFTWARE_CLOCK else hz
            ioctl(ring.descriptor, abi.IOC_PERIOD, struct.pack("<Q", value))

    def drain(self, until_ns: int) -> Drain:
        """Records up to this monotonic moment; what comes while the rings are emptied one by one is kept for the next drain.

        Otherwise a task's exec could be seen on one core before its fork on another.
        """
        drain, tasks = Drain(), _TaskRecords(until_ns)
        self._take_later(drain, tasks)
        for cpu, ring in self._rings.items():
            data = ring.drain()
            if data:
                self._scan(data, cpu, self._sampling_id[cpu], drain, tasks)
        drain.records += tasks.take()
        # Each ring is sorted already, so this merges runs; a task's records may lie in several rings.
        drain.records.sort(key=_TIME)
        cut = bisect_right(drain.records, until_ns, key=_TIME)
        self._later = drain.records[cut:]
        del drain.records[cut:]
        return drain

    def close(self) -> None:
        for cpu in list(self._rings):
            self._close_cpu(cpu)

    def _take_later(self, drain: Drain, tasks: _TaskRecords) -> None:
        """What the last drain kept; an address may have been found to be idle since then."""
        for record in self._later:
            _, _, kind, pid, _, body, _ = record
            if kind == _SAMPLE and pid == 0 and body[8:16] in self.idle_addresses:
                drain.idle += 1
            else:
                drain.records.append(record)
                tasks.sampled.add(pid)

    def _scan(self, data: bytes, cpu: int, sampling_id: int, drain: Drain, tasks: _TaskRecords) -> None:
        append, idle_addresses = drain.records.append, self.idle_addresses
        add_place, add_sampled = tasks.places(data, cpu).append, tasks.sampled.add
        position, end = 0, len(data)
        while position + _HEAD_BYTES <= end:
            kind, misc, size, first, third, fourth = _HEAD(data, position)
            after = position + size
            if size < _HEADER_BYTES or after > end:
                break  # cannot happen in a ring that only the kernel writes; never loop on it
            if kind == _SAMPLE:
                if size < _CHAIN_OFFSET:
                    break
                time_ns, _, _, length = _SAMPLE_HEAD(data, position + _SAMPLE_HEAD_OFFSET)
                if first != sampling_id:
                    append((time_ns, cpu, TRACEPOINT, third, fourth, data[position + _RAW_OFFSET : after], first))
                else:
                    start = position + _CHAIN_OFFSET
                    # Innermost address of an idle core: the chain is the kernel marker, then the address.
                    if third == 0 and data[start + 8 : start + 16] in idle_addresses:
                        drain.idle += 1
                    else:
                        add_sampled(third)
                        stop = start + 8 * length
                        # Of a program that runs its own code the register says nothing.
                        argument = None
                        if misc & _CPUMODE == _KERNEL and stop + 16 <= after and _U64(data, stop)[0]:
                            argument = _U64(data, stop + 8)[0]
                        append((time_ns, cpu, _SAMPLE, third, fourth, data[start : stop if stop < after else after], argument))
            elif kind in _TASK_KINDS and size >= _LEAST_TASK_BYTES:
                pid = first & _PID_MASK
                add_place((pid, position))
                if kind == _FORK:
                    tasks.parents.add(first >> 32)
                    if pid == third:
                        tasks.forked.append(pid)
                elif kind == _EXIT and pid == third and _U64(data, after - _TIME_FROM_END)[0] <= tasks.until_ns:
                    tasks.exited.add(pid)
            else:
                self._note(kind, data, position, size, cpu, drain)
            position = after

    def _note(self, kind: int, data: bytes, position: int, size: int, cpu: int, drain: Drain) -> None:
        """The rare records: losses, throttling, and what is not of a task."""
        if kind == records.LOST and size >= 8 + records.LOST_BODY.size:
            lost = records.LOST_BODY.unpack_from(data, position + 8)[1]
            drain.lost[cpu] = drain.lost.get(cpu, 0) + lost
        elif kind == records.THROTTLE:
            drain.throttled[cpu] = drain.throttled.get(cpu, 0) + 1
        elif size >= 8 + _TIME_FROM_END:
            time_ns = _U64(data, position + size - _TIME_FROM_END)[0]
            drain.records.append((time_ns, cpu, kind, 0, 0, data[position : position + size], None))

    def _open_cpu(self, cpu: int, pages: int) -> None:
        descriptor = self._open_sampling_event(cpu, pages)
        try:
            ring = _map_ring(descriptor, pages)
        except OSError as error:
            os.close(descriptor)
            raise SourceUnavailable(
                f"cannot map the ring of core {cpu}: {error.strerror}", "give CAP_IPC_LOCK, or raise kernel.perf_event_mlock_kb"
            ) from None
        self._rings[cpu] = ring
        self._event_of[cpu] = self.event_name
        self._tracepoint_descriptors[cpu] = []
        try:
            self._sampling_id[cpu] = event_id(descriptor)
            for tracepoint_id in self._tracepoint_ids:
                self._add_tracepoint(cpu, tracepoint_id, descriptor)
            enable(descriptor)
        except BaseException:
            self._close_cpu(cpu)  # a ring that never fills would look like a core that never works
            raise

    def _open_sampling_event(self, cpu: int, pages: int) -> int:
        """Hardware cycles where the core has them, else the software clock; kernels before 5.1 know no KSYMBOL records."""
        clocks = [(_SOFTWARE_CLOCK, abi.TYPE_SOFTWARE, abi.SW_CPU_CLOCK)]
        if self.event_name in ("", "cycles"):
            clocks.insert(0, ("cycles", abi.TYPE_HARDWARE, abi.HW_CPU_CYCLES))
        refusal: NecroscopeError | OSError | None = None
        for name, event_type, config in clocks:
            for ksymbol in (abi.FLAG_KSYMBOL, 0):
                attr = abi.EventAttr(
                    event_type,
                    config,
                    _SAMPLE_TYPE,
                    _COMMON_FLAGS | _TASK_FLAGS | ksymbol,
                    frequency=self.hz,
                    wakeup_watermark_bytes=pages * PAGE_BYTES // 2,
                    user_registers=abi.FIRST_ARGUMENT_REGISTER,
                )
                try:
                    descriptor = open_event(attr, cpu=cpu)
                except OSError as error:
                    refusal = error
                    continue
                self.event_name = name
                self.tells_kernel_code = bool(ksymbol)
                return descriptor
        assert refusal is not None
        raise refusal

    def _add_tracepoint(self, cpu: int, tracepoint_id: int, output: int) -> None:
        attr = abi.EventAttr(abi.TYPE_TRACEPOINT, tracepoint_id, _TRACEPOINT_SAMPLE_TYPE, _COMMON_FLAGS)
        descriptor = open_event(attr, cpu=cpu)
        self._tracepoint_descriptors[cpu].append(descriptor)
        ioctl(descriptor, abi.IOC_SET_OUTPUT, output)
        self.tracepoint_of[event_id(descriptor)] = tracepoint_id
        enable(descriptor)

    def _close_cpu(self, cpu: int) -> None:
        self._interrupted.add(cpu)
        for descriptor in self._tracepoint_descriptors.pop(cpu):
            self.tracepoint_of.pop(event_id(descriptor), None)
            os.close(descriptor)
        self._rings.pop(cpu).close()
        self._sampling_id.pop(cpu, None)
        del self._event_of[cpu]


def _map_ring(descriptor: int, pages: int) -> Ring:
    """Locked memory may be scarce: halve the ring until it fits."""
    while True:
        try:
            return Ring(descriptor, pages)
        except OSError:
            if pages <= _LEAST_PAGES:
                raise
            pages //= 2


def _ring_pages(cpus: int, hz: int) -> int:
    """A power of two, as the kernel wants it; several seconds of samples, so that a drain a second has many to work through."""
    wanted = max(_RING_BYTES, hz * _BYTES_PER_HZ)
    share = min(wanted, _ALL_RINGS_BYTES // max(1, cpus)) // PAGE_BYTES
    return max(_LEAST_PAGES, 1 << max(0, share.bit_length() - 1))
