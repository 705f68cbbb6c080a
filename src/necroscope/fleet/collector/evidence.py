"""Evidence that somebody looks at: bundles unpacked into temporary directories, read and never
written.

There are a few at a time; the one that nobody has looked at for longest goes first.
"""

import asyncio
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fastapi import FastAPI

from necroscope.fleet.opened_bundle import open_bundle
from necroscope.store.query import Store
from necroscope.views.web.app import Recording, recording_app

# Of at most 64 MB each, unpacked.
MOST_OPEN: Final = 8
RecordingOf = Callable[[Store], Recording]


@dataclass(slots=True)
class _Opened:
    directory: tempfile.TemporaryDirectory[str]
    recording: Recording
    app: FastAPI
    readers: int = field(default=0)

    def close(self) -> None:
        self.recording.reports.close()
        self.directory.cleanup()


class EvidenceShelf:
    """By its path in the lake, the application over each bundle that was asked for lately."""

    def __init__(self, recording_of: RecordingOf, most_open: int) -> None:
        self._recording_of = recording_of
        self._most_open = most_open
        self._opening: OrderedDict[str, asyncio.Task[_Opened]] = OrderedDict()

    @asynccontextmanager
    async def opened(self, path: str, read: Callable[[], bytes]) -> AsyncIterator[FastAPI]:
        """Stays open as long as the context does. What several ask for at once is unpacked once."""
        task = self._opening.get(path)
        if task is None:
            task = self._opening[path] = asyncio.create_task(asyncio.to_thread(self._open, read))
        self._opening.move_to_end(path)
        try:
            opened = await asyncio.shield(task)
        except BaseException:
            # What failed is tried anew by the next who asks.
            if task.done() and self._opening.get(path) is task:
                del self._opening[path]
            raise
        opened.readers += 1
        try:
            yield opened.app
        finally:
            opened.readers -= 1
            self._close_oldest()

    def _open(self, read: Callable[[], bytes]) -> _Opened:
        content = read()
        directory = tempfile.TemporaryDirectory(prefix="necroscope-evidence-")
        try:
            recording = self._recording_of(open_bundle(content, Path(directory.name) / "recording"))
            return _Opened(directory, recording, recording_app(recording))
        except BaseException:
            directory.cleanup()
            raise

    def _close_oldest(self) -> None:
        idle = [
            path
            for path, task in self._opening.items()
            if task.done() and not task.result().readers
        ]
        for path in idle[: max(0, len(self._opening) - self._most_open)]:
            self._opening.pop(path).result().close()
