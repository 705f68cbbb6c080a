"""The rings of all cores, two on each: opens them, follows CPU hot-plug, and hands them to the
native core, which puts their records in order.

One holds samples only. The other holds what tasks do (fork, exec, mmap, exit), which users can do
as often as they like: who fills it costs names, which are asked for again, and no samples.
Tracepoint events are directed into it as well (PERF_EVENT_IOC_SET_OUTPUT).
"""

import contextlib
import errno
import os
import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from ctypes import Array
from fcntl import ioctl
from typing import Final, Protocol

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.model.reading import Moment, Reading, Source, Trouble
from necroscope.model.units import NS_PER_S
from necroscope.perf_abi import event_attr as abi
from necroscope.perf_abi.sample_layout import SampleLayout
from necroscope.profile.library import NativeRing
from necroscope.sources.perf.event import enable, event_id, open_event
from necroscope.sources.perf.ring import PAGE_BYTES, Ring
from necroscope.sources.readiness import Readiness

# Records of tasks: two MiB a core hold two seconds of an exec storm; many cores share 24 MiB.
_TASK_RING_BYTES: Final = 2 << 20
_ALL_TASK_RINGS_BYTES: Final = 24 << 20
# Samples: half a MiB holds 20 s of 97 Hz; many cores share 12 MiB (128 KiB each of 96, 5 s). The
# watermark wakes us when a ring is half full.
_SAMPLE_RING_BYTES: Final = 512 << 10
_ALL_SAMPLE_RINGS_BYTES: Final = 12 << 20
_BYTES_PER_HZ: Final = 1 << 10
_LEAST_PAGES: Final = max(1, (64 << 10) // PAGE_BYTES)

_SAMPLE_TYPE: Final = (
    abi.SAMPLE_IDENTIFIER
    | abi.SAMPLE_TID
    | abi.SAMPLE_TIME
    | abi.SAMPLE_CPU
    | abi.SAMPLE_CALLCHAIN
    | abi.SAMPLE_REGS_USER
)
_TRACEPOINT_SAMPLE_TYPE: Final = (
    abi.SAMPLE_IDENTIFIER | abi.SAMPLE_TID | abi.SAMPLE_TIME | abi.SAMPLE_CPU | abi.SAMPLE_RAW
)
_COMMON_FLAGS: Final = (
    abi.FLAG_DISABLED | abi.FLAG_WATERMARK | abi.FLAG_SAMPLE_ID_ALL | abi.FLAG_USE_CLOCKID
)
_TASK_FLAGS: Final = (
    abi.FLAG_MMAP | abi.FLAG_MMAP2 | abi.FLAG_COMM | abi.FLAG_COMM_EXEC | abi.FLAG_TASK
)

# How their records look, for the native core.
SAMPLING_LAYOUT: Final = SampleLayout(_SAMPLE_TYPE, user_registers=abi.FIRST_ARGUMENT_REGISTER)
TRACEPOINT_LAYOUT: Final = SampleLayout(_TRACEPOINT_SAMPLE_TYPE)
TRACEPOINT_ID_OFFSET: Final = 8
TRACEPOINT_RAW_OFFSET: Final = 44  # the raw size is 32 bits wide, the data follows it at once
_SOFTWARE_CLOCK: Final = "cpu-clock"


class EventFilter(Protocol):
    def attach(self, descriptor: int) -> None:
        """To the event behind this descriptor."""
        ...

    def detach(self, descriptor: int) -> None: ...


class Rings:
    """Sampling rings of the given cores.

    `tells_kernel_code`: the kernel writes a record when a BPF program comes or goes. `sampling_ids`
    and `tracepoint_of` hold the ids of events: a sample carries that of its own.
    """

    def __init__(self, hz: int, tracepoint_ids: Sequence[int] = ()) -> None:
        self.hz = hz
        self.event_name = ""
        self.tells_kernel_code = True
        self._tracepoint_ids = tuple(tracepoint_ids)
        self._rings: dict[int, Ring] = {}
        self._task_rings: dict[int, Ring] = {}
        self.sampling_ids: dict[int, int] = {}
        self._event_of: dict[int, str] = {}
        self._tracepoint_descriptors: dict[int, list[int]] = {}
        self.tracepoint_of: dict[int, int] = {}
        self._native: Array[NativeRing] | None = None
        self._idle_filter: EventFilter | None = None
        self._interrupted: set[int] = set()
        self._readiness = Readiness()

    @property
    def cpus(self) -> frozenset[int]:
        return frozenset(self._rings)

    def native(self) -> "Array[NativeRing]":
        """All of them, as the native core drains them."""
        if self._native is None:
            rings = (*self._rings.items(), *self._task_rings.items())
            self._native = (NativeRing * len(rings))(*(ring.native(cpu) for cpu, ring in rings))
        return self._native

    def use_idle_filter(self, idle_filter: EventFilter | None) -> None:
        """Let the kernel drop what is idle, on the rings of now and of later; None: no longer."""
        before, self._idle_filter = self._idle_filter, idle_filter
        for ring in self._rings.values():
            if before is not None:
                before.detach(ring.descriptor)
            if idle_filter is not None:
                idle_filter.attach(ring.descriptor)

    def fileno(self) -> int:
        """To be polled: readable when a ring is half full."""
        return self._readiness.fileno()

    def follow(self, cpus: Iterable[int], expected_cpus: int) -> None:
        """Open rings of cores that came, close those of cores that went. The first refusal is
        raised, after all were tried.
        """
        wanted = frozenset(cpus)
        for cpu in self.cpus - wanted:
            self._close_cpu(cpu)
        refusals: list[NecroscopeError] = []
        for cpu in sorted(wanted - self.cpus):
            try:
                self._open_cpu(cpu, expected_cpus)
            except NecroscopeError as error:
                refusals.append(error)
            except OSError as error:
                if error.errno != errno.ENODEV:  # went offline between the two reads
                    hint = (
                        f"{self.hz} Hz may be above sysctl kernel.perf_event_max_sample_rate"
                        if error.errno == errno.EINVAL
                        else ""
                    )
                    refusals.append(
                        SourceUnavailable(f"cannot sample core {cpu}: {error.strerror}", hint)
                    )
        try:
            if refusals:
                raise refusals[0]
        finally:  # the traceback holds this frame: with it they would be garbage of every second
            del refusals

    def close_hung_up(self) -> None:
        """The ring of a core that went offline hangs up for good; should the core be back by then,
        `follow` opens another.
        """
        ended = self._readiness.hung_up()
        for cpu in [cpu for cpu, ring in self._rings.items() if ring.descriptor in ended]:
            self._close_cpu(cpu)

    def take_interrupted(self) -> set[int]:
        """Cores whose ring was closed since the last call, also if it is open again."""
        interrupted, self._interrupted = self._interrupted, set()
        return interrupted

    def set_hz(self, hz: int) -> None:
        """The software clock forgets at its opening that it was given a frequency, and takes
        nanoseconds (kernel/events/core.c).

        Given hertz it would fire every ten microseconds, the least it can.
        """
        self.hz = hz
        for cpu, ring in self._rings.items():
            value = NS_PER_S // hz if self._event_of[cpu] == _SOFTWARE_CLOCK else hz
            ioctl(ring.descriptor, abi.IOC_PERIOD, struct.pack("<Q", value))

    def close(self) -> None:
        for cpu in list(self._rings):
            self._close_cpu(cpu)
        self._readiness.close()

    def _open_cpu(self, cpu: int, expected_cpus: int) -> None:
        pages = _sample_ring_pages(expected_cpus, self.hz)
        self._rings[cpu] = ring = _map_ring(cpu, self._open_sampling_event(cpu, pages), pages)
        self._native = None
        self._event_of[cpu] = self.event_name
        self._tracepoint_descriptors[cpu] = []
        try:
            self.sampling_ids[cpu] = event_id(ring.descriptor)
            pages = _task_ring_pages(expected_cpus)
            tasks = _map_ring(cpu, self._open_task_event(cpu, pages), pages)
            self._task_rings[cpu] = tasks
            for tracepoint_id in self._tracepoint_ids:
                self._add_tracepoint(cpu, tracepoint_id, tasks.descriptor)
            if self._idle_filter is not None:
                self._idle_filter.attach(ring.descriptor)
            # Tasks first: of a process that is sampled its start was not missed.
            for descriptor in (tasks.descriptor, ring.descriptor):
                enable(descriptor)
                self._readiness.watch(descriptor)
        except BaseException:
            self._close_cpu(cpu)  # a ring that never fills would look like a core that never works
            raise

    def _open_sampling_event(self, cpu: int, pages: int) -> int:
        """Hardware cycles where the core has them, else the software clock."""
        clocks = [(_SOFTWARE_CLOCK, abi.TYPE_SOFTWARE, abi.SW_CPU_CLOCK)]
        if self.event_name in ("", "cycles"):
            clocks.insert(0, ("cycles", abi.TYPE_HARDWARE, abi.HW_CPU_CYCLES))
        *attempts, last = clocks
        for clock in attempts:
            with contextlib.suppress(OSError):
                return self._try_sampling_event(cpu, pages, *clock)
        return self._try_sampling_event(cpu, pages, *last)

    def _try_sampling_event(
        self, cpu: int, pages: int, name: str, event_type: int, config: int
    ) -> int:
        attr = abi.EventAttr(
            event_type,
            config,
            _SAMPLE_TYPE,
            _COMMON_FLAGS,
            frequency=self.hz,
            wakeup_watermark_bytes=pages * PAGE_BYTES // 2,
            user_registers=abi.FIRST_ARGUMENT_REGISTER,
        )
        descriptor = open_event(attr, cpu=cpu)
        self.event_name = name
        return descriptor

    def _open_task_event(self, cpu: int, pages: int) -> int:
        """An event that never happens, for the records that come with it; kernels before 5.1 know
        none of kernel code.
        """
        with contextlib.suppress(OSError):
            descriptor = _task_event(cpu, pages, abi.FLAG_KSYMBOL)
            self.tells_kernel_code = True
            return descriptor
        self.tells_kernel_code = False
        return _task_event(cpu, pages, 0)

    def _add_tracepoint(self, cpu: int, tracepoint_id: int, output: int) -> None:
        attr = abi.EventAttr(
            abi.TYPE_TRACEPOINT, tracepoint_id, _TRACEPOINT_SAMPLE_TYPE, _COMMON_FLAGS
        )
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
        self._native = None
        ring = self._rings.pop(cpu)
        if self._idle_filter is not None:
            self._idle_filter.detach(ring.descriptor)
        for closed in (ring, self._task_rings.pop(cpu, None)):
            if closed is not None:
                self._readiness.forget(closed.descriptor)
                closed.close()
        self.sampling_ids.pop(cpu, None)
        del self._event_of[cpu]


def _task_event(cpu: int, pages: int, ksymbol: int) -> int:
    attr = abi.EventAttr(
        abi.TYPE_SOFTWARE,
        abi.SW_DUMMY,
        _TRACEPOINT_SAMPLE_TYPE,
        _COMMON_FLAGS | _TASK_FLAGS | ksymbol,
        wakeup_watermark_bytes=pages * PAGE_BYTES // 2,
    )
    return open_event(attr, cpu=cpu)


def _map_ring(cpu: int, descriptor: int, pages: int) -> Ring:
    """Locked memory may be scarce: halve the ring until it fits."""
    while True:
        try:
            return Ring(descriptor, pages)
        except OSError as error:
            if pages <= _LEAST_PAGES:
                os.close(descriptor)
                raise SourceUnavailable(
                    f"cannot map the ring of core {cpu}: {error.strerror}",
                    "give CAP_IPC_LOCK, or raise kernel.perf_event_mlock_kb",
                ) from None
            pages //= 2


def _sample_ring_pages(cpus: int, hz: int) -> int:
    wanted_bytes = max(_SAMPLE_RING_BYTES, hz * _BYTES_PER_HZ)
    return _ring_pages(min(wanted_bytes, _ALL_SAMPLE_RINGS_BYTES // max(1, cpus)))


def _task_ring_pages(cpus: int) -> int:
    return _ring_pages(min(_TASK_RING_BYTES, _ALL_TASK_RINGS_BYTES // max(1, cpus)))


def _ring_pages(size_bytes: int) -> int:
    """A power of two, as the kernel wants it."""
    return max(_LEAST_PAGES, 1 << max(0, (size_bytes // PAGE_BYTES).bit_length() - 1))


class HotPlug(Source):
    """Has no rows; a core whose ring cannot be opened is a gap of `samples`. Looked at when the
    rings have been drained: a core that came is sampled from then on.
    """

    name = "hot-plug"
    tables: tuple[str, ...] = ()
    is_buffered = True

    def __init__(self, rings: Rings, online: Callable[[], Collection[int]]) -> None:
        self._rings = rings
        self._online = online

    def read(self, now: Moment) -> Reading:  # noqa: ARG002
        online = self._online()
        try:
            if online and online != self._rings.cpus:
                self._rings.follow(online, len(online))
        except NecroscopeError as error:
            return Reading(parts=(Trouble("cores to sample", ("samples",), error),))
        return Reading()
