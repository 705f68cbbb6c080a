"""A segment in memory: the last minutes of every table, for `top` and `check`, which record nothing
to disk.
"""

import threading
from bisect import bisect_right
from collections import deque
from itertools import islice
from typing import Final

from necroscope.model.reading import Row, Rows
from necroscope.model.span import Extent
from necroscope.model.tables import TABLES
from necroscope.model.top_source import TopSample
from necroscope.recorder.sink import RowBatch
from necroscope.segment.block import rows_of
from necroscope.segment.recording import Pin

_MOST_ROWS: Final = 200_000


class MemorySegment:
    """A `Sink` that can be asked: rows of the last `keep_ns`, bounded in number; written by one
    thread, read by others.
    """

    def __init__(self, keep_ns: int) -> None:
        self.size_bytes = 0
        self._keep_ns = keep_ns
        self._rows: dict[str, deque[Row]] = {name: deque(maxlen=_MOST_ROWS) for name in TABLES}
        self._sampled: deque[TopSample] = deque(maxlen=_MOST_ROWS)
        self._frames: list[Row] = []
        self._stacks: list[Row] = []
        self._notices: list[str] = []
        self._status = ""
        self._newest_ns: int | None = None
        self._lock = threading.Lock()

    def write(self, batch: RowBatch, idle_samples: int, now_ns: int) -> None:  # noqa: ARG002
        with self._lock:
            self._frames += batch.rows.get("frames", [])
            for table, columns in batch.columns:
                rows = rows_of(TABLES[table], len(columns), map(memoryview, columns.buffers))
                if table == "stacks":
                    self._stacks += rows
                else:
                    self._sampled.extend(map(self._sampled_of, rows))
            for table, rows in batch.rows.items():
                if TABLES[table].is_timed:
                    self._rows[table].extend(rows)
            if batch.rows.get("cores"):
                self._newest_ns = _time(batch.rows["cores"][-1])
            self._forget_old()

    def start_segment(self, start_ns: int) -> None:  # noqa: ARG002
        with self._lock:
            self._frames.clear()
            self._stacks.clear()

    def pin(self, pin: Pin) -> None: ...

    def take_loss(self) -> bool:
        return False

    def take_notices(self) -> list[str]:
        return []

    def close(self) -> None: ...

    def describe(self, status: str, notices: list[str]) -> None:
        """What the recorder says of itself."""
        with self._lock:
            self._status, self._notices = status, list(notices)

    def span(self) -> Extent | None:
        with self._lock:
            cores = self._rows["cores"]
            return (_time(cores[0]), _time(cores[-1])) if cores else None

    def rows(self, table: str, from_ns: int, to_ns: int) -> Rows:
        """Rows with from_ns < time <= to_ns. Few tables are in strict order of time, so the end is
        looked for row by row.
        """
        with self._lock:
            rows = self._rows[table]
            first = bisect_right(rows, from_ns, key=_time)
            return [row for row in islice(rows, first, None) if _time(row) <= to_ns]

    def samples_between(self, from_ns: int, to_ns: int) -> list[TopSample]:
        with self._lock:
            first = bisect_right(self._sampled, from_ns, key=lambda sampled: sampled.time_ns)
            return [
                sampled
                for sampled in islice(self._sampled, first, None)
                if sampled.time_ns <= to_ns
            ]

    def notices(self) -> list[str]:
        with self._lock:
            return list(self._notices)

    def status(self) -> str:
        with self._lock:
            return self._status

    def _sampled_of(self, row: Row) -> TopSample:
        time_ns, cpu, pid, tid, comm, cgroup, stack, _ = row
        kernel_function = user_function = None
        while isinstance(stack, int) and stack >= 0:
            _, parent, frame = self._stacks[stack]
            assert isinstance(frame, int)
            _, function, _, kind, *_ = self._frames[frame]
            if kind == "kernel":
                kernel_function = kernel_function or function
            else:
                user_function = function
                break
            stack = parent
        return TopSample(time_ns, cpu, pid, tid, comm, cgroup, kernel_function, user_function)  # type: ignore[arg-type]

    def _forget_old(self) -> None:
        if self._newest_ns is None:
            return
        oldest_ns = self._newest_ns - self._keep_ns
        for rows in self._rows.values():
            while rows and _time(rows[0]) < oldest_ns:
                rows.popleft()
        while self._sampled and self._sampled[0].time_ns < oldest_ns:
            self._sampled.popleft()


def _time(row: Row) -> int:
    time_ns = row[0]
    assert isinstance(time_ns, int)
    return time_ns
