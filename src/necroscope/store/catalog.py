"""The segments of a recording, oldest first, with the time they reach over; opened only when a
question needs them.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final

from necroscope.errors import CorruptData, PermissionMissing, RecordingError
from necroscope.model.span import Extent
from necroscope.segment.kept_rows import KeptRows
from necroscope.segment.reader import SegmentReader
from necroscope.segment.recording import LIVE, Identity, read_identity, segment_paths
from necroscope.segment.sealed_reader import SegmentGoneError
from necroscope.segment.spans import read_spans
from necroscope.segment.window import Window, overlaps

_COARSE_NS: Final = 50_000_000


@dataclass(frozen=True, slots=True)
class Segment:
    """`from_ns` and `to_ns` are the first and the last time of any of its rows."""

    name: str
    path: Path
    is_live: bool
    from_ns: int
    to_ns: int


class Catalog:
    """Tolerates anything in the directory; what is not a segment is ignored."""

    def __init__(self, directory: Path, kept: KeptRows | None = None) -> None:
        """RecordingError if this is not a recording, PermissionMissing if that cannot be
        determined. `kept` is for a process that reads the same minutes again and again.
        """
        self.directory = directory
        self._kept = kept
        self.identity, self.damage = _open_identity(directory)
        self.segments: list[Segment] = []
        self._sealed: dict[Path, Segment] = {}
        self._live: list[Path] = []
        self._readers: dict[Path, SegmentReader] = {}
        self._listed_ns = 0
        self._is_held = False
        self.refresh()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile it stays as it is: dozens of questions about the same moment. One about a
        segment that went away is a SegmentGoneError.
        """
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    def refresh(self) -> None:
        """Take in what came and went since; costs a listing if the directory changed, and what a
        live journal grew by.
        """
        if self._is_held:
            return
        changed_ns = self._changed_ns()
        if changed_ns != self._listed_ns:
            self._list()
            # File times are as coarse as a kernel tick: a listing so soon after a change may have
            # missed the next one.
            self._listed_ns = changed_ns if time.time_ns() - changed_ns > _COARSE_NS else 0
        elif not self._live:
            return
        live = [segment for path in self._live if (segment := self._segment(path, is_live=True))]
        self.segments = sorted([*self._sealed.values(), *live], key=attrgetter("name"))

    def reader(self, segment: Segment) -> SegmentReader:
        """The same reader each time, so that manifests and footers are read once."""
        return self._reader(segment.path)

    def within(self, window: Window) -> list[Segment]:
        return [
            segment for segment in self.segments if overlaps(window, segment.from_ns, segment.to_ns)
        ]

    def _list(self) -> None:
        paths = segment_paths(self.directory)
        self._live = [path for path in paths if path.name.endswith(LIVE)]
        sealed = [path for path in paths if not path.name.endswith(LIVE)]
        spans = {} if all(path in self._sealed for path in sealed) else read_spans(self.directory)
        known = (
            (path, self._sealed.get(path) or self._segment(path, span=spans.get(path.name)))
            for path in sealed
        )
        self._sealed = {path: segment for path, segment in known if segment is not None}
        self._readers = {
            path: reader
            for path, reader in self._readers.items()
            if path in self._sealed or path in self._live
        }

    def _segment(
        self, path: Path, *, is_live: bool = False, span: Extent | None = None
    ) -> Segment | None:
        """None if it went away just now; the next listing will show what became of it."""
        try:
            if span is None:
                reader = self._reader(path)
                reader.refresh()
                span = reader.reach
        except SegmentGoneError:
            self._listed_ns = 0
            return None
        return Segment(path.name, path, is_live, *span)

    def _reader(self, path: Path) -> SegmentReader:
        if path not in self._readers:
            self._readers[path] = SegmentReader(path, self._kept)
        return self._readers[path]

    def _changed_ns(self) -> int:
        try:
            return self.directory.stat().st_mtime_ns
        except OSError as error:
            raise RecordingError(f"cannot open {self.directory}: {error.strerror}") from None


def _open_identity(directory: Path) -> tuple[Identity | None, str | None]:
    """Who made the recording; if only that file is damaged, the segments still answer."""
    try:
        os.scandir(directory).close()
    except (
        PermissionError
    ):  # also below a directory that is closed to us, as /var/lib/private of a service is
        raise PermissionMissing(
            f"cannot read {directory}: permission denied",
            "run as the user who recorded it, or root",
        ) from None
    except NotADirectoryError:
        raise RecordingError(
            f"{directory} is a file, not the directory of a recording",
            "name a directory that `necroscope record --dir` made; `necroscope import` makes one of"
            " a capture",
        ) from None
    except FileNotFoundError:
        raise RecordingError(
            f"there is no directory {directory}",
            "name a directory that `necroscope record --dir` made",
        ) from None
    except OSError as error:
        raise RecordingError(f"cannot open {directory}: {error.strerror}") from None
    try:
        return read_identity(directory), None
    except CorruptData as error:
        return None, error.facts
