"""A recording to ask: a directory of ours, or a capture of another tool, which is imported for the
time being.
"""

import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from necroscope.errors import UsageError

if TYPE_CHECKING:
    from necroscope.interchange.dmesg import LogText
    from necroscope.model.reading import Rows
    from necroscope.store.query import Store


@contextmanager
def opened_recording(
    path: Path,
    from_ns: int | None,
    to_ns: int | None,
    load_answers: Callable[[], object] | None = None,
) -> Iterator[tuple["Store", list[str]]]:
    """The store, and what an import could not read or name; of a capture only what lies between the
    two times is imported. `load_answers` loads the modules that are needed next: they are loaded
    meanwhile, where that can be done.
    """
    if not _is_capture(path):
        yield _open_store(path), []
        return
    with _removed_at_end() as directory:
        notes = _import_beside(
            lambda: _import_capture(path, directory, from_ns, to_ns), load_answers
        )
        yield _open_store(directory), notes


def _open_store(directory: Path) -> "Store":
    # Not above: `import` takes events_of from here, and runs without numpy.
    from necroscope.store.query import Store  # noqa: PLC0415

    return Store.open(directory)


def _import_beside(
    work: Callable[[], list[str]], load_answers: Callable[[], object] | None
) -> list[str]:
    if load_answers is None or sys.platform != "linux":
        return work()
    # Not above: other systems lack what they need.
    from necroscope.cli.import_process import import_beside  # noqa: PLC0415
    from necroscope.cli.reader_guard import is_guarded  # noqa: PLC0415

    return import_beside(work, load_answers) if is_guarded() else work()


def _is_capture(path: Path) -> bool:
    """A file, or a directory that holds captures and is not a recording. What we may not look at is
    left to the store to refuse.
    """
    try:
        if not path.is_dir():
            return path.exists()
        # Not above: a file has nothing of a recording and of a directory of captures.
        from necroscope.interchange.rolling import list_rolling  # noqa: PLC0415
        from necroscope.segment.recording import RECORDING_FILE  # noqa: PLC0415

        return not (path / RECORDING_FILE).exists() and bool(list_rolling(path))
    except (UsageError, PermissionError):
        return False


def _import_capture(
    path: Path, directory: Path, from_ns: int | None, to_ns: int | None
) -> list[str]:
    # Readers and numbers for captures only.
    from necroscope.cli.progress_bar import progress_bar  # noqa: PLC0415
    from necroscope.interchange.import_options import Options  # noqa: PLC0415
    from necroscope.interchange.importer import import_files  # noqa: PLC0415

    is_window = from_ns is not None or to_ns is not None
    with progress_bar() as progress:
        options = Options(from_ns=from_ns, to_ns=to_ns, progress=progress, in_journals=is_window)
        report = import_files([path], directory, options, events_of)
    return report.all_notes()


@contextmanager
def _removed_at_end() -> Iterator[Path]:
    """Also when a signal ends the process: an import may be as large as its capture."""
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        with tempfile.TemporaryDirectory(prefix="necroscope-flame-") as directory:
            yield Path(directory) / "recording"
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def events_of(lines: Sequence[tuple[int, "LogText"]]) -> "Rows":
    """Rows of `events`. Where the text does not say who wrote a line, it is taken for the kernel's,
    but for one that has the mark of what daemons forward.
    """
    from necroscope.sources.kernel_log.line import FORWARDED, LogLine  # noqa: PLC0415 - only for those who give a kernel log
    from necroscope.sources.kernel_log.patterns import PatternSet  # noqa: PLC0415
    from necroscope.sources.kernel_log.sequences import Sequencer  # noqa: PLC0415

    sequencer = Sequencer(PatternSet())
    events = []
    for time_ns, line in lines:
        by_kernel = (
            line.facility == 0
            if line.facility is not None
            else FORWARDED.search(line.message) is None
        )
        read = LogLine(time_ns, None, line.severity, line.facility or 0, by_kernel, line.message)
        events += sequencer.feed(read, time_ns)[0]
    return [event.row() for event in (*events, *sequencer.finish())]
