"""Evidence that is looked at: each bundle unpacked by a process of its own, read and never written.

There are a few at a time; the one that has not been looked at for longest goes first.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

from necroscope.fleet.collector.evidence_child import (
    Answer,
    EvidenceChild,
    EvidenceLostError,
    RecordingOf,
)

# Of some 130 MB each while no question runs, and of at most 512 MiB: next to the collector they fit
# into the 2 GiB of its pod.
MOST_OPEN: Final = 2
Result = TypeVar("Result")


@dataclass(slots=True)
class _OpenEvidence:
    child: EvidenceChild
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    readers: int = 0


class EvidenceShelf:
    """By its path in the lake, the process of each bundle that was asked for lately."""

    def __init__(self, recording_of: RecordingOf, most_open: int) -> None:
        self._recording_of = recording_of
        self._most_open = most_open
        self._opening: OrderedDict[str, asyncio.Task[_OpenEvidence]] = OrderedDict()
        # Waits for evidence take no thread from others.
        self._threads = ThreadPoolExecutor(most_open + 1, "evidence")
        self._places = asyncio.Semaphore(most_open)

    async def ask(
        self, path: str, read: Callable[[], bytes], question: str, query: bytes
    ) -> Answer:
        """What several ask for at once is unpacked once. What failed is tried again by the next who
        asks.
        """
        async with self._places:
            task = self._opening.get(path)
            if task is None:
                task = self._opening[path] = asyncio.create_task(self._open(read))
            self._opening.move_to_end(path)
            opened = None
            try:
                opened = await asyncio.shield(task)
                opened.readers += 1
                async with opened.turn:
                    return await self._in_thread(lambda: opened.child.ask(question, query))
            except BaseException as error:
                if (opened is None and task.done()) or isinstance(error, EvidenceLostError):
                    await self._forget(path, task)
                raise
            finally:
                if opened is not None:
                    opened.readers -= 1
                await self._close_oldest()

    async def _open(self, read: Callable[[], bytes]) -> _OpenEvidence:
        return _OpenEvidence(
            await self._in_thread(lambda: EvidenceChild(self._recording_of, read()))
        )

    async def _forget(self, path: str, task: asyncio.Task[_OpenEvidence]) -> None:
        if self._opening.get(path) is task:
            del self._opening[path]
            if not task.cancelled() and task.exception() is None:
                await self._in_thread(task.result().child.close)

    async def _close_oldest(self) -> None:
        idle = [
            (path, task)
            for path, task in self._opening.items()
            if task.done() and (task.exception() is not None or not task.result().readers)
        ]
        for path, task in idle[: max(0, len(self._opening) - self._most_open)]:
            await self._forget(path, task)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
