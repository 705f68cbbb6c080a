"""perf.data as a capture: records in, batches of samples in time order out."""

import struct
from array import array
from collections import deque
from collections.abc import Iterator
from ctypes import c_uint64
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from necroscope.errors import UsageError
from necroscope.interchange.capture import LATEST_NS, Capture, ImportPlan, Lost, SampleBatch
from necroscope.interchange.import_profile import ImportProfile
from necroscope.interchange.perf_data.answers import Answers
from necroscope.interchange.perf_data.features import build_ids, facts_of, wall_clock_offset_ns
from necroscope.interchange.perf_data.format import CGROUP, LOST_SAMPLES
from necroscope.interchange.perf_data.header import FileHeader, read_header
from necroscope.interchange.perf_data.kernel_names import KernelNames
from necroscope.interchange.perf_data.stream import RecordStream
from necroscope.interchange.perf_data.symbol_files import SymbolFiles
from necroscope.interchange.profile_event import ProfileEvent
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.interchange.unreadable import unreadable
from necroscope.model.names import clean
from necroscope.model.reading import ColumnBuffers
from necroscope.perf_abi.event_attr import FLAG_SAMPLE_ID_ALL, SAMPLE_REGS_USER
from necroscope.perf_abi.records import HEADER, KSYMBOL, LOST, LOST_BODY, MMAP, MMAP2, THROTTLE
from necroscope.perf_abi.sample_layout import SAMPLE_CGROUP, SAMPLE_STACK_USER
from necroscope.profile.capture_core import CaptureCore
from necroscope.profile.core import PassedOn
from necroscope.profile.sample_columns import columns_of, sample_columns

_END: Final = (1 << 64) - 1
# A turn of the core costs little, but files are opened to answer it.
_BATCH_BYTES: Final = 4 << 20
_KERNEL_NAME: Final = "[kernel.kallsyms]"
# The instruction pointer among the registers of `arch/*/include/uapi/asm/perf_regs.h`, by the name
# that uname has for it.
_IP_REGISTER: Final = {"x86_64": 8, "aarch64": 32}
_MOST_NOTED: Final = 1 << 16
# As many loaded programs as are kept (profile.kernel_functions).
_MOST_PROGRAMS: Final = 256


def open_perf_data(path: Path, search: SymbolSearch | None = None) -> Capture:
    """A capture of a perf.data file. Its times are UTC only if it has a wall clock."""
    path = path / "data" if path.is_dir() else path
    try:
        with path.open("rb") as file:
            header = read_header(file, str(path))
    except OSError as error:
        raise unreadable(path, error) from None
    reader = _Reader(path, header, search or SymbolSearch())
    capture = Capture(
        facts_of(header), lambda plan: reader.read(capture, plan), notes=list(header.notes)
    )
    return capture


def sample_span_ns(path: Path) -> tuple[int, int] | None:
    """First and last time of a sample, by one pass over the times alone."""
    path = path / "data" if path.is_dir() else path
    span = (c_uint64 * 2)(_END, 0)
    try:
        with path.open("rb") as file:
            header = read_header(file, str(path))
            profile = ImportProfile()
            _describe_events(profile.core, header, None)
            for _ in RecordStream(file, header.data_start, header.data_end).pass_to(
                lambda content: profile.core.scan(content, span)
            ):
                pass
            profile.close()
    except OSError as error:
        raise unreadable(path, error) from None
    offset_ns = wall_clock_offset_ns(header)[0] or 0
    return (
        (span[0] + offset_ns, span[1] + offset_ns)
        if facts_of(header).has_time and span[0] <= span[1]
        else None
    )


def _describe_events(core: CaptureCore, header: FileHeader, arch: str | None) -> None:
    has_trailer = any(event.flags & FLAG_SAMPLE_ID_ALL for event in header.events)
    core.start_capture(has_time=facts_of(header).has_time, has_trailer=has_trailer)
    for event in header.events:
        core.add_event(event.layout, ip_register=_IP_REGISTER.get(arch or "", 64))
    for event_id, number in header.event_of_id.items():
        core.add_id(event_id, number)


@dataclass(slots=True)
class _Reader:
    path: Path
    header: FileHeader
    search: SymbolSearch

    def read(self, capture: Capture, plan: ImportPlan) -> Iterator[SampleBatch]:
        try:
            with self.path.open("rb") as file:
                reading = _Reading(self, file, capture, plan)
                try:
                    yield from reading.batches()
                finally:
                    reading.close()
        except OSError as error:
            raise unreadable(self.path, error) from None


class _Reading:
    """One pass over the file."""

    def __init__(self, reader: _Reader, file: BinaryIO, capture: Capture, plan: ImportPlan) -> None:
        facts, header, profile, search = capture.facts, reader.header, plan.profile, reader.search
        is_here = search.is_this_machine(facts.host, facts.kernel_release)
        ids = build_ids(header)
        self._capture = capture
        self._header = header
        self._plan = plan
        self._core = profile.core
        self._offset_ns = plan.offset_ns + (wall_clock_offset_ns(header)[0] or 0)
        self._stream = RecordStream(file, header.data_start, header.data_end)
        self._event: ProfileEvent | None = None
        self._kernel = KernelNames(
            self._core,
            search,
            ids.get(_KERNEL_NAME),
            profile.kernel_symbols,
            is_same_machine=is_here,
        )
        files = profile.symbol_files.setdefault(
            (search, is_here), SymbolFiles(search, is_same_machine=is_here)
        )
        self._answers = Answers(profile, self._kernel, files, ids)
        _describe_events(self._core, header, facts.arch)
        self._core.set_name(0, b"swapper")
        self._set_window()
        self._throttled = 0
        self._cgroup_names: dict[int, str] = {}
        capture.lost.clear()

    def close(self) -> None:
        self._kernel.close()

    def _set_window(self) -> None:
        plan = self._plan
        if plan.from_ns <= 0 and plan.to_ns > LATEST_NS:
            return
        if not self._capture.facts.has_time:
            raise UsageError(
                "the samples of this capture have no time, so there is no window of it",
                "omit --from and --to",
            )
        begin, end = (
            min(max(at_ns - self._offset_ns, 0), _END) for at_ns in (plan.from_ns, plan.to_ns)
        )
        self._core.set_window(begin, _END if plan.to_ns > LATEST_NS else end)

    def batches(self) -> Iterator[SampleBatch]:
        for watermark in self._watermarks():
            yield from self._turns(watermark)
        yield from self._turns(_END - 1)
        self._write_notes()

    def _watermarks(self) -> Iterator[int]:
        """Read on until a batch is complete: times up to which all samples have come."""
        unread_bytes = 0
        end_ns = self._plan.to_ns - self._offset_ns
        for taken in self._stream.pass_to(self._core.feed):
            self._capture.bytes_read = self._stream.position
            unread_bytes += taken
            watermark = self._core.safe_until_ns(is_late=self._stream.is_packed)
            if watermark and unread_bytes >= _BATCH_BYTES:
                unread_bytes = 0
                yield watermark
            if watermark >= end_ns:
                return

    def _turns(self, until: int) -> Iterator[SampleBatch]:
        """What waits up to a time, one segment after the other."""
        core, has_time = self._core, self._capture.facts.has_time
        if self._event is None and not self._plan.all_events:
            self._choose_event()
        while (earliest := core.earliest_ns) <= until:
            at_ns = min(max((earliest if has_time else 0) + self._offset_ns, 0), LATEST_NS)
            segment, end_ns = self._plan.segment_at(at_ns)
            self._plan.profile.enter(segment)
            idle_before = core.view.idle
            last = (
                min(until, end_ns - 1 - self._offset_ns)
                if has_time and end_ns <= LATEST_NS
                else until
            )
            core.replay(max(last, earliest), self._offset_ns)
            self._take_in(core.passed_on())
            self._answers.finish_turn()
            span = core.turn_span()
            if span is not None:
                columns = self._with_cgroups(sample_columns(core, ()))
                yield SampleBatch(segment, *span, columns, core.view.idle - idle_before)

    def _choose_event(self) -> None:
        """Of several events the one that samples time; those that were sampled so far are known."""
        facts = self._capture.facts
        self._event = ProfileEvent(facts, self._plan.event)
        sampled = [
            event for event in range(len(self._header.events)) if self._core.event_counts(event)[0]
        ]
        for event in self._event.others(sampled):
            self._core.leave_out(event)

    def _take_in(self, passed_on: Iterator[PassedOn]) -> None:
        programs: deque[bytes] = deque(maxlen=_MOST_PROGRAMS)
        for time_ns, cpu, record in passed_on:
            kind = HEADER.unpack_from(record)[0]
            if kind in (MMAP, MMAP2):
                self._kernel.note_mapping(record)
            elif kind == KSYMBOL:
                programs.append(record)
            elif kind == CGROUP:
                if len(self._cgroup_names) < _MOST_NOTED:
                    (number,) = struct.unpack_from("<Q", record, 8)
                    self._cgroup_names[number] = clean(record[16:].partition(b"\0")[0], 4096)
            elif kind == THROTTLE:
                self._throttled += 1
            elif kind in (LOST, LOST_SAMPLES):
                self._note_lost(time_ns, cpu, record, is_plain=kind == LOST)
        self._kernel.note_programs(programs)

    def _note_lost(self, time_ns: int, cpu: int, record: bytes, *, is_plain: bool) -> None:
        samples = (
            LOST_BODY.unpack_from(record, 8)[1]
            if is_plain
            else struct.unpack_from("<Q", record, 8)[0]
        )
        at_ns = min(max(time_ns + self._offset_ns, 0), LATEST_NS)
        lost, known = Lost(at_ns, cpu, min(samples, (1 << 32) - 1)), self._capture.lost
        if len(known) >= _MOST_NOTED:
            lost = lost._replace(samples=lost.samples + known.pop().samples)
        known.append(lost)

    def _with_cgroups(self, columns: ColumnBuffers | None) -> ColumnBuffers | None:
        """Samples of `--all-cgroups` say the id of theirs, other records its name."""
        if columns is None or not any(
            event.layout.has(SAMPLE_CGROUP) for event in self._header.events
        ):
            return columns
        ids = array("Q", self._core.column("cgroup_id", 8))
        places = {
            number: place
            for place, number in enumerate(sorted(set(ids) & self._cgroup_names.keys()))
        }
        bits = bytearray((len(ids) + 7) // 8)
        for row, number in enumerate(ids):
            bits[row // 8] |= (number in places) << row % 8
        numbers = array("i", [places.get(number, 0) for number in ids]).tobytes()
        texts = [self._cgroup_names[number] for number in places] or [""]
        times, cpus, pids, tids = columns.buffers[1:8:2]
        core = self._core
        names = [clean(name) for name in core.names()]
        return columns_of(
            columns.count,
            (times, cpus, pids, tids, core.column("name", 4)),
            names,
            (bytes(bits), numbers),
            texts,
            (columns.buffers[17], columns.buffers[19]),
        )

    def _write_notes(self) -> None:
        stream, view = self._stream, self._core.view
        notes = list(self._header.notes)
        if stream.fault:
            notes.append(stream.fault)
        if stream.skipped_trace_bytes:
            notes.append(
                f"{stream.skipped_trace_bytes} bytes of hardware trace (AUX) were left out"
            )
        if view.malformed:
            notes.append(
                f"{view.malformed} samples do not fit their record or their event, and were"
                " left out"
            )
        if view.refused:
            notes.append(
                f"{view.refused} records were left out: there are more tasks and stacks than can be"
                " held"
            )
        if self._throttled:
            notes.append(f"the kernel throttled sampling {self._throttled} times")
        if any(
            event.layout.has(SAMPLE_STACK_USER) and event.layout.has(SAMPLE_REGS_USER)
            for event in self._header.events
        ):
            notes.append(
                "copied user stacks (--call-graph dwarf) are not unwound: of user code the"
                " innermost function is shown"
            )
        if view.bounded:
            notes.append(
                f"{view.bounded} stacks were cut: there are more different ones than can be held"
            )
        if self._kernel.why_unnamed:
            notes.append(f"kernel functions have no names: {self._kernel.why_unnamed}")
        if self._event is not None:
            counts = [
                self._core.event_counts(event)[1] for event in range(len(self._header.events))
            ]
            notes += self._event.notes(counts)
        self._capture.notes[:] = notes
