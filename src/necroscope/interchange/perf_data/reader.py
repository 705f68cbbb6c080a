"""perf.data as a capture: blocks of records in, batches of samples in time order out."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from necroscope.errors import UsageError
from necroscope.interchange.capture import Capture, SampleBatch
from necroscope.interchange.perf_data.features import build_ids, facts_of, wall_clock_offset_ns
from necroscope.interchange.perf_data.folding import Folder, Folding
from necroscope.interchange.perf_data.frame_names import FrameNames
from necroscope.interchange.perf_data.header import FileHeader, read_header
from necroscope.interchange.perf_data.kernel_names import KernelNames
from necroscope.interchange.perf_data.naming import Naming
from necroscope.interchange.perf_data.samples import Chains, SampleDecoder, Samples
from necroscope.interchange.perf_data.stream import Block, RecordStream
from necroscope.interchange.perf_data.symbol_files import SymbolFiles
from necroscope.interchange.perf_data.tasks import Tasks
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.interchange.unreadable import unreadable
from necroscope.perf_abi.event_attr import SAMPLE_REGS_USER
from necroscope.perf_abi.records import SAMPLE
from necroscope.perf_abi.sample_layout import SAMPLE_STACK_USER

_END: Final = (1 << 63) - 1
# Records wait for older ones of other cores until two rounds of perf have passed, or this much was read.
_MARK_BYTES: Final = 32 << 20
# Rounds are short on a busy machine.
_ROUND_BYTES: Final = 1 << 20
_LAST_MARKS: Final = 3
# To name functions costs less for many samples together.
_BATCH_BYTES: Final = 6 << 20
_KERNEL_NAME: Final = "[kernel.kallsyms]"


def open_perf_data(
    path: Path, search: SymbolSearch | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> Capture:
    """A capture of a perf.data file, or of a window of it on the capture's own time line (UTC only if it has a wall clock)."""
    path = path / "data" if path.is_dir() else path
    try:
        with path.open("rb") as file:
            header = read_header(file, str(path))
    except OSError as error:
        raise unreadable(path, error) from None
    facts = facts_of(header)
    reader = _Reader(path, header, search or SymbolSearch(), (from_ns, to_ns))
    capture = Capture(facts, lambda: reader.read(capture), notes=list(header.notes))
    return capture


def sample_span_ns(path: Path) -> tuple[int, int] | None:
    """First and last time of a sample, by one pass over the times alone."""
    path = path / "data" if path.is_dir() else path
    try:
        with path.open("rb") as file:
            header = read_header(file, str(path))
            facts = facts_of(header)
            decoder = SampleDecoder(header, facts.arch, has_time=facts.has_time)
            first, last = _END, 0
            for block in RecordStream(file, header.data_start, header.data_end).blocks():
                _, _, times = decoder.decode(block.words, block.starts[_kinds(block) == SAMPLE], (_END, _END), 0)
                first, last = min(first, int(times.min(initial=_END))), max(last, int(times.max(initial=0)))
    except OSError as error:
        raise unreadable(path, error) from None
    offset_ns = wall_clock_offset_ns(header)[0] or 0
    return (first + offset_ns, last + offset_ns) if facts.has_time and first <= last else None


def _kinds(block: Block) -> npt.NDArray[np.uint32]:
    return (block.words[block.starts] & np.uint64(0xFFFFFFFF)).astype(np.uint32)


class _Pending(NamedTuple):
    samples: Samples
    chains: Chains


class _Begun(NamedTuple):
    """Samples in time order that have all but their stacks."""

    samples: Samples
    comm: npt.NDArray[np.int32]
    cgroup: npt.NDArray[np.int32]
    folding: Folding


@dataclass(slots=True)
class _Reader:
    path: Path
    header: FileHeader
    search: SymbolSearch
    window_ns: tuple[int | None, int | None]

    def read(self, capture: Capture) -> Iterator[SampleBatch]:
        try:
            with self.path.open("rb") as file:
                yield from _Reading(self, file, capture).batches()
        except OSError as error:
            raise unreadable(self.path, error) from None


class _Reading:
    """One pass over the file."""

    def __init__(self, reader: _Reader, file: BinaryIO, capture: Capture) -> None:
        facts = capture.facts
        ids = build_ids(reader.header)
        is_here = reader.search.is_this_machine(facts.host, facts.kernel_release)
        self._capture = capture
        self._header = reader.header
        self._offset_ns = wall_clock_offset_ns(reader.header)[0] or 0
        self._window = self._file_window(reader.window_ns)
        self._stream = RecordStream(file, reader.header.data_start, reader.header.data_end)
        self._decoder = SampleDecoder(reader.header, facts.arch, has_time=facts.has_time)
        self._tasks = Tasks(reader.header, capture.comms, capture.cgroups, has_time=facts.has_time)
        kernel = KernelNames(reader.search, ids.get(_KERNEL_NAME), is_same_machine=is_here)
        names = FrameNames(kernel, SymbolFiles(reader.search, is_same_machine=is_here))
        self._naming = Naming(names)
        self._folder = Folder(capture.stacks, self._naming, self._tasks, ids)
        self._waiting: list[_Pending] = []
        self._latest = 0
        self._marks: list[int] = []
        self._bytes_since_mark = 0
        self._words_read = 0

    def _file_window(self, window_ns: tuple[int | None, int | None]) -> tuple[int, int] | None:
        if window_ns == (None, None):
            return None
        if not self._capture.facts.has_time:
            raise UsageError("the samples of this capture have no time, so there is no window of it", "leave out --from and --to")
        begin, end = window_ns
        return (0 if begin is None else begin - self._offset_ns, _END if end is None else end - self._offset_ns)

    def batches(self) -> Iterator[SampleBatch]:
        """One batch is always begun before the one before it is finished: its names are found meanwhile."""
        begun: deque[_Begun] = deque()
        try:
            for watermark in self._watermarks():
                begun.append(self._begin(watermark))
                if len(begun) > 1:
                    yield from self._finish(begun.popleft())
            begun.append(self._begin(_END))
            while begun:
                yield from self._finish(begun.popleft())
        finally:
            self._naming.close()
        self._write_notes()

    def _watermarks(self) -> Iterator[int]:
        """Read on until a batch is complete: times up to which all samples have come."""
        unread_bytes = 0
        for number, block in enumerate(self._stream.blocks()):
            self._take_in(block)
            if not number:
                self._naming.start_process(self._tasks.kernel_mappings, self._header.data_end)
            unread_bytes += len(block.content)
            watermark = self._watermark(block)
            if watermark is not None and unread_bytes >= _BATCH_BYTES:
                unread_bytes = 0
                yield watermark
            if watermark is not None and self._window is not None and watermark >= self._window[1]:
                return

    def _take_in(self, block: Block) -> None:
        is_sample = _kinds(block) == SAMPLE
        samples, chains, times = self._decoder.decode(block.words, block.starts[is_sample], self._window, self._words_read)
        latest = self._tasks.collect(block, block.starts[~is_sample], self._words_read)
        self._latest = max(self._latest, latest, int(times.max()) if len(times) else 0)
        self._words_read += len(block.words)
        self._bytes_since_mark += len(block.content)
        self._capture.bytes_read = self._stream.position
        if len(samples):
            self._waiting.append(_Pending(samples, chains))

    def _watermark(self, block: Block) -> int | None:
        """A time that no record still to come lies before: the latest before the round before the last one that ended."""
        if self._bytes_since_mark < (_ROUND_BYTES if block.ends_round else _MARK_BYTES):
            return None
        self._bytes_since_mark = 0
        self._marks = [*self._marks[-_LAST_MARKS + 1 :], self._latest]
        return self._marks[0] if len(self._marks) == _LAST_MARKS else None

    def _begin(self, until: int) -> _Begun:
        ready, chains = self._take_ready(until)
        ready = ready.take(np.argsort(ready.time, kind="stable"))
        assigned = self._tasks.assign(ready, until)
        folding = self._folder.begin(chains, ready.chain, assigned.image, assigned.images, ready.time)
        return _Begun(ready, assigned.comm, self._tasks.cgroups_of(ready), folding)

    def _finish(self, begun: _Begun) -> Iterator[SampleBatch]:
        """Nothing if there is no sample."""
        ready, stacks = begun.samples, self._folder.finish(begun.folding)
        lost = self._tasks.lost
        self._capture.lost[:] = [record._replace(time_ns=record.time_ns + self._offset_ns) for record in lost]
        has_time = self._capture.facts.has_time
        if len(ready):
            yield SampleBatch(
                ready.time + self._offset_ns if has_time else np.zeros(len(ready), np.int64),
                *(ready.cpu, ready.pid, ready.tid, begun.comm, begun.cgroup, ready.event, ready.period, stacks),
            )

    def _take_ready(self, until: int) -> tuple[Samples, Chains]:
        parts: list[Samples] = []
        chains: list[Chains] = []
        still: list[_Pending] = []
        chains_before = 0
        for pending in self._waiting:
            is_ready = pending.samples.time <= until
            part = pending.samples.take(is_ready)
            part.chain += chains_before
            chains_before += len(pending.chains.hashes)
            parts.append(part)
            chains.append(pending.chains)
            if not is_ready.all():
                still.append(_Pending(pending.samples.take(~is_ready), pending.chains))
        self._waiting = still
        return _join(parts), _join_chains(chains)

    def _write_notes(self) -> None:
        capture, stream = self._capture, self._stream
        notes = list(self._header.notes)
        if stream.fault:
            notes.append(stream.fault)
        if stream.skipped_trace_bytes:
            notes.append(f"{stream.skipped_trace_bytes} bytes of hardware trace (AUX) were left out")
        if self._decoder.malformed:
            notes.append(f"{self._decoder.malformed} samples do not fit their record or their event, and were left out")
        if self._tasks.throttled:
            notes.append(f"the kernel throttled sampling {self._tasks.throttled} times")
        if any(event.layout.has(SAMPLE_STACK_USER) and event.layout.has(SAMPLE_REGS_USER) for event in self._header.events):
            notes.append("copied user stacks (--call-graph dwarf) are not unwound: of user code the innermost function is shown")
        if capture.stacks.cut:
            notes.append(f"{capture.stacks.cut} stacks were cut: there are more different ones than can be held")
        if self._naming.why_kernel_unnamed:
            notes.append(f"kernel functions have no names: {self._naming.why_kernel_unnamed}")
        capture.notes[:] = notes


def _join(parts: list[Samples]) -> Samples:
    return parts[0] if len(parts) == 1 else Samples.join(parts) if parts else Samples.none()


def _join_chains(parts: list[Chains]) -> Chains:
    return parts[0] if len(parts) == 1 else Chains.join(parts) if parts else Chains.none()
