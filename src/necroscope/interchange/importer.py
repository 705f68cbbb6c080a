"""Other tools' captures become one recording: samples, core use and kernel log on one time axis, in
sealed segments.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from necroscope.errors import CorruptData, RecordingError, UsageError
from necroscope.interchange.detect import FileKind
from necroscope.interchange.import_options import IMPORTED_BOOT, Options
from necroscope.interchange.import_profile import ImportProfile
from necroscope.interchange.imported_samples import SampleImport
from necroscope.interchange.input_hosts import by_host, host_of
from necroscope.interchange.inputs import Input, list_inputs
from necroscope.interchange.segment_set import SegmentSet
from necroscope.interchange.unfinished import unfinished
from necroscope.interchange.wall_clock import WallClock
from necroscope.model.names import clean
from necroscope.model.reading import Gap, Rows
from necroscope.model.units import format_moment
from necroscope.segment.recording import RECORDING_FILE, Identity, make_recording

if TYPE_CHECKING:
    from necroscope.interchange.dmesg import LogText
    from necroscope.interchange.read_tables import ReadTables

__all__ = [
    "EventsOf",
    "FileReport",
    "ImportReport",
    "Options",
    "import_files",
    "import_hosts",
]

EventsOf = Callable[[Sequence[tuple[int, "LogText"]]], Rows]
"""Rows of `events` for lines of the kernel log with their UTC time."""

_LATEST_NS: Final = (1 << 63) - 1
_TABLES: Final = (FileKind.MPSTAT, FileKind.SAR, FileKind.PROC)


@dataclass(slots=True)
class FileReport:
    path: Path
    kind: str
    rows: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ImportReport:
    """What was read and what was not; `unnamed` are the modules whose functions have no names, with
    the samples that touches.
    """

    directory: Path
    node: str
    from_ns: int
    to_ns: int
    segments: int
    size_bytes: int
    rows: dict[str, int]
    idle_samples: int
    lost_samples: int
    files: list[FileReport]
    unnamed: list[str]
    notes: list[str]

    def all_notes(self) -> list[str]:
        """All that a reader should know; a note that many files have is reported once."""
        files_of: dict[str, list[str]] = {}
        for file in self.files:
            for note in file.notes:
                files_of.setdefault(note, []).append(clean(file.path.name))
        others = {
            note: f" and {len(names) - 1} more files"
            for note, names in files_of.items()
            if len(names) > 1
        }
        by_file = [f"{names[0]}{others.get(note, '')}: {note}" for note, names in files_of.items()]
        return [*by_file, *self.notes, *self.unnamed]


def import_files(
    paths: Sequence[Path],
    directory: Path,
    options: Options | None = None,
    events_of: EventsOf | None = None,
) -> ImportReport:
    """Write a recording of all these; the directory appears when all is in it, or not at all."""
    options = options or Options()
    refuse_used_directory(directory)
    with _opened(paths, options) as inputs:
        return _import(inputs, directory, options, events_of)


def import_hosts(
    paths: Sequence[Path],
    directory: Path,
    options: Options | None = None,
    events_of: EventsOf | None = None,
) -> list[ImportReport]:
    """As `import_files`; where the files are of several hosts, a recording of each, in a directory
    that has its name.
    """
    options = options or Options()
    refuse_used_directory(directory)
    with _opened(paths, options) as inputs:
        hosts, strays = by_host(inputs)
        if len(hosts) == 1:
            return [_import(inputs, directory, options, events_of)]
        reports = [
            _import(own, directory / _as_name(host), options, events_of)
            for host, own in hosts.items()
        ]
    reports[0].notes += [
        f"{clean(given.path.name)} does not say whose it is, and was left out: give its host's name"
        " to it, or import host by host"
        for given in strays
    ]
    return reports


def _as_name(host: str) -> str:
    """A host's name as that of a directory."""
    name = re.sub(r"[^\w.-]", "_", host)[:100].strip(".")
    return name or "unknown"


@contextmanager
def _opened(paths: Sequence[Path], options: Options) -> Iterator[list[Input]]:
    with tempfile.TemporaryDirectory(prefix="necroscope-import-") as scratch:
        yield list_inputs(paths, options.search, options.utc_offset_s, Path(scratch))


def _import(
    inputs: list[Input], directory: Path, options: Options, events_of: EventsOf | None
) -> ImportReport:
    try:
        with unfinished(directory) as made:
            return _Import(inputs, made, directory, options).run(events_of)
    except OSError as error:
        raise RecordingError(
            f"cannot write {directory}: {error.strerror}",
            "choose one with room that you may write to",
        ) from None


def refuse_used_directory(directory: Path) -> None:
    try:
        held = set(os.listdir(directory))
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordingError(
            f"cannot use {directory}: {error.strerror}", "choose a new directory"
        ) from None
    if any(name.endswith(".live") for name in held):
        raise RecordingError(
            f"{directory} holds a live recording",
            "an import makes one of its own: choose a new directory",
        )
    if RECORDING_FILE in held:
        raise RecordingError(
            f"{directory} holds a recording already", "choose a new directory, or remove that one"
        )
    if held:
        raise RecordingError(
            f"{directory} holds something other than a recording",
            "choose an empty or new directory",
        )


class _Import:
    def __init__(
        self, inputs: list[Input], temporary: Path, directory: Path, options: Options
    ) -> None:
        self._inputs = inputs
        self._directory = directory
        self._temporary = temporary
        self._options = options
        self._clock = WallClock()
        self._tables: list[tuple[Input, ReadTables]] = []
        self._logs: list[tuple[Input, list[LogText]]] = []
        self._reports = {
            id(given): FileReport(
                Path(given.shown) if given.shown else given.path,
                given.kind.value if given.kind else "unread",
            )
            for given in inputs
        }

    def run(self, events_of: EventsOf | None) -> ImportReport:
        self._read_tables()
        captures = [given.capture for given in self._inputs if given.capture is not None]
        self._clock.learn_from_captures(captures)
        for _, lines in self._logs:
            self._clock.learn_from_log(lines)
        node, notes = self._node()
        cpus = max(
            [capture.facts.cpus or 0 for capture in captures]
            + [use.cpus or 0 for _, use in self._tables],
            default=0,
        )
        make_recording(
            self._temporary,
            Identity(node, IMPORTED_BOOT, self._options.made_by, self._options.labels),
        )
        profile = ImportProfile()
        segments = SegmentSet(
            self._temporary,
            profile,
            node,
            cpus or None,
            in_journals=self._options.in_journals,
        )
        try:
            samples = SampleImport(self._inputs, segments, profile, self._clock, self._options)
            self._add_tables(segments)
            self._add_logs(segments, events_of)
            samples.run()
            segments.close()
        except BaseException:
            segments.abandon()
            raise
        finally:
            profile.close()
        if not set(segments.rows) - {"gaps"}:
            raise self._nothing(samples.span())
        return self._report(node, notes, segments, samples)

    def _nothing(self, span: tuple[int, int] | None) -> UsageError:
        if not self._options.has_window or span is None:
            shown = "`perf script -i FILE | head` shows whether there is a sample"
            hint = (
                "ask for more between --from and --to; times without a zone are UTC"
                if self._options.has_window
                else shown
            )
            return UsageError("none of the files holds anything to import", hint)
        first_ns, end_ns = self._options.from_ns, self._options.to_ns
        window = [
            f"{word} {format_moment(at_ns)}"
            for word, at_ns in (("from", first_ns), ("to", end_ns))
            if at_ns is not None
        ]
        facts = (
            f"no samples {' '.join(window)}; the capture is from {format_moment(span[0])} to"
            f" {format_moment(span[1])}"
        )
        return UsageError(facts, "ask for a window within it; times without a zone are UTC")

    def _read_tables(self) -> None:
        """Kernel logs and reports of mpstat are small compared with samples: they are read first,
        and held whole, up to a bound.
        """
        if any(given.kind in _TABLES for given in self._inputs):
            from necroscope.interchange.imported_tables import read_tables  # noqa: PLC0415 - their readers

            self._tables = read_tables(self._inputs, self._options.utc_offset_s, self._window())
        for given in self._inputs:
            if given.kind is FileKind.DMESG:
                self._logs.append((given, self._read_log(given)))

    def _read_log(self, given: Input) -> list["LogText"]:
        from necroscope.interchange.dmesg import MOST_CHARACTERS, MOST_LINES, read_dmesg  # noqa: PLC0415 - its reader

        lines: list[LogText] = []
        characters = left_out = 0
        try:
            for line in read_dmesg(given.path, self._options.year, self._options.utc_offset_s):
                characters += len(line.message)
                if len(lines) < MOST_LINES and characters <= MOST_CHARACTERS:
                    lines.append(line)
                else:
                    left_out += 1
        except CorruptData as error:
            if not lines:
                raise
            given.notes.append(
                f"{error.facts.removeprefix(f'{given.path}: ')}; what came before was read"
            )
        if any(line.facility is None for line in lines):
            given.notes.append("does not say who wrote a line: `dmesg -x` does")
        if left_out:
            given.notes.append(
                f"{left_out} lines after the first {len(lines)} were left out: give the part of the"
                " log that matters"
            )
        return lines

    def _node(self) -> tuple[str, list[str]]:
        hosts = [*map(host_of, self._inputs), *(use.host for _, use in self._tables)]
        found = list(dict.fromkeys(clean(host) for host in hosts if host))
        note = (
            [f"the files are of different machines: {', '.join(found[:10])}"]
            if len(found) > 1
            else []
        )
        return (found[0] if found else "unknown"), note

    def _add_tables(self, segments: SegmentSet) -> None:
        for given, use in self._tables:
            given.notes += use.notes
            for table, rows in use.rows.items():
                segments.add_rows(table, rows)
                self._reports[id(given)].rows += len(rows)
                self._note_gaps(segments, given, table, rows)

    def _add_logs(self, segments: SegmentSet, events_of: EventsOf | None) -> None:
        for given, lines in self._logs:
            dated = self._dated(given, lines)
            rows = self._within(
                [
                    (time_ns, None, line.severity, line.facility or 0, line.message)
                    for time_ns, line in dated
                ]
            )
            segments.add_rows("log", rows)
            if events_of is not None:
                segments.add_rows("events", self._within(events_of(dated)))
            self._reports[id(given)].rows = len(rows)
            self._note_gaps(segments, given, "log", rows)

    def _dated(self, given: Input, lines: list["LogText"]) -> list[tuple[int, "LogText"]]:
        offset_ns = 0
        if any(line.time_ns is None for line in lines):
            placing = self._clock.place_log(given, lines)
            offset_ns = placing.offset_ns
            given.notes.append(
                "times are not wall clock: they count from boot, and are placed by"
                f" {placing.origin}"
            )
        times = [
            line.time_ns if line.time_ns is not None else (line.since_boot_ns or 0) + offset_ns
            for line in lines
        ]
        return [
            (min(max(time_ns, 0), _LATEST_NS), line)
            for time_ns, line in zip(times, lines, strict=True)
        ]

    def _window(self) -> tuple[int, int]:
        return (
            self._options.from_ns or 0,
            _LATEST_NS if self._options.to_ns is None else self._options.to_ns,
        )

    def _within(self, rows: Rows) -> Rows:
        first_ns, end_ns = self._window()
        return [row for row in rows if isinstance(row[0], int) and first_ns <= row[0] < end_ns]

    def _note_gaps(self, segments: SegmentSet, given: Input, table: str, rows: Rows) -> None:
        time_ns = rows[0][0] if rows else None
        if isinstance(time_ns, int):
            for note in given.notes:
                segments.add_gap(
                    Gap(table, time_ns, time_ns, clean(f"{given.path.name}: {note}", 1000))
                )

    def _report(
        self, node: str, notes: list[str], segments: SegmentSet, samples: SampleImport
    ) -> ImportReport:
        for given in self._inputs:
            report = self._reports[id(given)]
            report.notes = ([given.fault] if given.fault else []) + given.notes
            report.rows += samples.samples_of.get(id(given), 0)
        spans = segments.spans.values()
        return ImportReport(
            self._directory,
            node,
            min(from_ns for from_ns, _ in spans),
            max(to_ns for _, to_ns in spans),
            len(spans),
            segments.size_bytes,
            dict(sorted(segments.rows.items())),
            samples.idle,
            samples.lost,
            list(self._reports.values()),
            segments.unnamed.notes(),
            notes,
        )
