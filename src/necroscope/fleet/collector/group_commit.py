"""Batches become durable in groups: one file, one fsync (or PUT) for all that came within a quarter
of a second.

`add` returns when the file with the batch is durable, and raises when it may not be: only then may
a node be told so.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from necroscope.errors import NecroscopeError
from necroscope.fleet.collector.metrics import Metrics
from necroscope.fleet.inbox import Receipt, inbox_path, pack
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import LakeError
from necroscope.model.units import format_bytes

# A group this large goes at once.
_FULL_BYTES: Final = 8 << 20
# One group at a time, and bundles at the same time.
_WRITERS: Final = 4


class GroupCommit:
    def __init__(
        self,
        lake: Lake,
        collector: str,
        metrics: Metrics,
        *,
        every_s: float,
        free_floor_bytes: int,
        clock_ns: Callable[[], int],
    ) -> None:
        self._lake = lake
        self._collector = collector
        self._metrics = metrics
        self._every_s = every_s
        self._free_floor_bytes = free_floor_bytes
        self._clock_ns = clock_ns
        self._waiting: list[tuple[Receipt, asyncio.Future[None]]] = []
        self._waiting_bytes = 0
        self._came = asyncio.Event()
        self._is_full = asyncio.Event()
        self._is_closing = False
        self._last_ns = 0
        self._writers = ThreadPoolExecutor(_WRITERS, "write")
        # None while the lake takes what it is given.
        self.failure: NecroscopeError | None = None

    async def add(self, receipt: Receipt) -> None:
        """Durable when it returns. A caller that goes away does not take its batch out of the
        group.
        """
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((receipt, done))
        self._waiting_bytes += len(receipt.body)
        self._came.set()
        if self._waiting_bytes >= _FULL_BYTES:
            self._is_full.set()
        await asyncio.shield(done)

    async def put(self, path: str, data: bytes) -> None:
        """A file of its own; durable when it returns."""
        await self._stored(path, lambda: data)

    async def run(self) -> None:
        """Until closed, and then until nothing waits."""
        while not (self._is_closing and not self._waiting):
            await self._came.wait()
            if not self._is_closing:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._is_full.wait(), self._every_s)
            await self._commit()
        self._writers.shutdown()

    def hurry(self) -> None:
        """From now on no request waits for others: the collector is about to end."""
        self._every_s = 0.0
        self._is_full.set()

    def close(self) -> None:
        self._is_closing = True
        self._came.set()
        self._is_full.set()

    async def probe(self) -> None:
        """After a failure: whether the lake takes files again, also when no batch comes because a
        balancer has turned away.
        """
        with contextlib.suppress(NecroscopeError):
            await self._stored(f"health/{self._collector}", lambda: b"")
            await asyncio.get_running_loop().run_in_executor(
                self._writers, self._lake.delete, f"health/{self._collector}"
            )

    async def _commit(self) -> None:
        group, self._waiting, self._waiting_bytes = self._waiting, [], 0
        self._is_full.clear()
        if not self._is_closing:
            self._came.clear()
        if not group:
            return
        error: NecroscopeError | None = None
        try:
            await self._stored(self._next_path(), lambda: pack(receipt for receipt, _ in group))
        except NecroscopeError as failure:
            error = failure
        for _, done in group:
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)
                done.exception()  # its request may have gone: then it is looked at nowhere else

    def _next_path(self) -> str:
        """Never one that was: a clock that is set back must not put a group in the place of
        another.
        """
        self._last_ns = max(self._clock_ns(), self._last_ns + 1)
        return inbox_path(self._last_ns, self._collector)

    async def _stored(self, path: str, content: Callable[[], bytes]) -> None:
        began_s = time.monotonic()
        try:
            await asyncio.get_running_loop().run_in_executor(
                self._writers, self._store, path, content
            )
        except NecroscopeError as error:
            self.failure = error
            self._metrics.add("commit_failures")
            raise
        self.failure = None
        self._metrics.observe("commit_seconds", time.monotonic() - began_s)

    def _store(self, path: str, content: Callable[[], bytes]) -> None:
        """Some space stays free: without it the inbox could never become tables."""
        space = self._lake.space_bytes()
        if space is not None and space[0] < self._free_floor_bytes:
            free, floor = format_bytes(space[0]), format_bytes(self._free_floor_bytes)
            raise LakeError(
                f"the lake is full: {free} are free, {floor} are kept free",
                "give it space, or remove old days",
            )
        self._lake.put(path, content())
