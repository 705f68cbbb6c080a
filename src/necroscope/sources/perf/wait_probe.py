"""The programs and maps that time waits, as one thing that can be attached, read and put to rest.

All are held by descriptor: with the recorder they are gone.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Protocol, TypeVar

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.sources.perf import btf
from necroscope.sources.perf.asleep_tasks import AsleepTask, AsleepTasks
from necroscope.sources.perf.bpf import (
    IteratorProgram,
    MapValue,
    TypedTracepointProgram,
    allow_locked_memory,
)
from necroscope.sources.perf.bpf_ring import RecordRing
from necroscope.sources.perf.system_calls import CALLS
from necroscope.sources.perf.wait_layout import (
    CORE_BYTES,
    OPEN_BYTES,
    RHYTHM_BYTES,
    RHYTHMS,
    SLEEPER_BYTES,
    SLEEPERS,
    WANTED,
    WORST,
    Places,
    WaitMaps,
    find_places,
)
from necroscope.sources.perf.wait_programs import WaitPrograms
from necroscope.sources.perf.wait_scan import ScanProgram

_RING_BYTES: Final = 1 << 19
_MOST_OPEN: Final = 512
_RING_ON_REAL_TIME: Final = (6, 12)


class _Closable(Protocol):
    def close(self) -> None: ...


_Held = TypeVar("_Held", bound=_Closable)


class WaitProbe:
    """`is_attached` is false while it rests: then only waits that go on are seen."""

    def __init__(self, root: Path, core_count: int, threshold_ns: int) -> None:
        self._held: list[_Closable] = []
        self._tracepoints: list[TypedTracepointProgram] = []
        self.is_attached = False
        self._asleep: AsleepTasks | None = None
        self._core_count = core_count
        allow_locked_memory()
        try:
            _refuse_sleeping_ring(root)
            self._open(root, threshold_ns)
            self.attach()
        except (OSError, NecroscopeError) as error:
            self.close()
            if isinstance(error, NecroscopeError):
                raise SourceUnavailable(error.facts, error.hint) from None
            raise SourceUnavailable(
                f"cannot load the BPF programs that time waits: {error.strerror}",
                "they need Linux 5.10 with BTF",
            ) from None

    def attach(self) -> None:
        for program in self._tracepoints:
            program.attach()
        self.is_attached = True

    def detach(self) -> None:
        for program in self._tracepoints:
            program.detach()
        self.is_attached = False

    def records(self) -> Iterator[bytes]:
        """Of waits that ended."""
        return self._ring.records()

    def open_waits(self) -> list[bytes]:
        """Of those that go on, a record each."""
        data = self._scan.read(_MOST_OPEN * OPEN_BYTES)
        return [data[at : at + OPEN_BYTES] for at in range(0, len(data), OPEN_BYTES)]

    @property
    def sees_calls(self) -> bool:
        """False where the kernel does not report in which system call a task sleeps."""
        return self._asleep is not None

    def asleep(self, pids: Iterable[int]) -> list[AsleepTask]:
        """Threads of these processes that sleep now, and in which system calls."""
        return self._asleep.find(pids) if self._asleep is not None else []

    def cores(self) -> bytes:
        """The words of all cores; the longest wait of each begins again."""
        data = self._cores.read()
        for core in range(self._core_count):
            self._cores.write_word(core * CORE_BYTES + WORST, 0)
        return data

    def close(self) -> None:
        for held in reversed(self._held):
            held.close()
        self._held, self._tracepoints = [], []

    def _hold(self, part: _Held) -> _Held:
        self._held.append(part)
        return part

    def _open(self, root: Path, threshold_ns: int) -> None:
        types = btf.read(root, WANTED)
        places = find_places(types)
        self._cores = self._hold(MapValue(CORE_BYTES * self._core_count))
        sleepers = self._hold(MapValue(SLEEPER_BYTES * SLEEPERS))
        scratch = self._hold(MapValue(OPEN_BYTES))
        rhythms = self._hold(MapValue(RHYTHM_BYTES * RHYTHMS))
        self._ring = self._hold(RecordRing(_RING_BYTES))
        maps = WaitMaps(
            self._cores.descriptor,
            sleepers.descriptor,
            self._ring.descriptor,
            scratch.descriptor,
            rhythms.descriptor,
            self._hold_calls(places).descriptor,
            self._core_count,
        )
        iterator = types.function("bpf_iter_task")
        self._asleep = self._open_asleep(places, maps, iterator)
        if self._asleep is None:
            places = places._replace(calls=None)
        scan = ScanProgram(places, maps, threshold_ns).over_tasks()
        self._scan = self._hold(IteratorProgram(scan, iterator))
        programs = WaitPrograms(places, maps, threshold_ns)
        for name, code in (
            ("sched_waking", programs.at_waking()),
            ("sched_switch", programs.at_switch()),
        ):
            identity, _ = types.tracepoint(name)
            self._tracepoints.append(self._hold(TypedTracepointProgram(code, identity)))

    def _hold_calls(self, places: Places) -> MapValue:
        """What one sleeps for in a system call, by its number."""
        table = self._hold(MapValue(CALLS))
        sleeps = places.calls.sleeps if places.calls is not None else b""
        for at in range(0, len(sleeps), 8):
            table.write_word(at, int.from_bytes(sleeps[at : at + 8], "little"))
        return table

    def _open_asleep(self, places: Places, maps: WaitMaps, iterator: int) -> AsleepTasks | None:
        """Before 5.15 (dd6e10fbd9fb) a program cannot ask for a task's registers: then locks of
        user space and of files, and pipes, are not seen.
        """
        if places.calls is None:
            return None
        try:
            return self._hold(AsleepTasks(places, places.calls, maps, iterator))
        except OSError:
            return None


def _refuse_sleeping_ring(root: Path) -> None:
    """Before 6.12 the lock of a ring sleeps on PREEMPT_RT, which a program must not
    do inside the scheduler.
    """
    try:
        is_real_time = (root / "sys/kernel/realtime").read_text().strip() == "1"
        release = (root / "proc/sys/kernel/osrelease").read_text()
    except OSError:
        return
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if is_real_time and numbers and tuple(map(int, numbers.groups())) < _RING_ON_REAL_TIME:
        raise SourceUnavailable(
            f"BPF cannot time waits on the real-time kernel {release.strip()}: the lock of a BPF"
            " ring sleeps there",
            "real-time kernels since 6.12 can",
        )
