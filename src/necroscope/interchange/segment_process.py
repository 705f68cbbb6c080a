"""The segments of a large import, written by a process of its own: it loads and runs Arrow while samples are read."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from necroscope.errors import RecordingError
from necroscope.interchange.capture import SampleBatch
from necroscope.interchange.forked import WORTHWHILE_BYTES, Forked, Messages
from necroscope.interchange.interned import Interned
from necroscope.model.reading import Gap, Row
from necroscope.segment.spans import Span


class Segments(Protocol):
    """Where an import puts what it reads; `rows`, `size_bytes` and `spans` are known once it is closed."""

    rows: dict[str, int]
    size_bytes: int
    spans: dict[str, Span]

    def add_samples(self, batch: SampleBatch, is_idle: npt.NDArray[np.bool_], since_ns: int) -> None: ...

    def add_rows(self, table: str, rows: Iterable[Row]) -> None: ...

    def add_gap(self, gap: Gap) -> None: ...

    def close_before(self, time_ns: int) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


def open_segments(directory: Path, interned: Interned, node: str, cpus: int | None, size_bytes: int) -> Segments:
    """By a process of its own, if an import of this size is worth it."""

    def make(interned: Interned) -> Segments:
        # The first to load Arrow, which takes as long as to read ten thousand samples.
        from necroscope.interchange.segment_set import SegmentSet  # noqa: PLC0415

        return SegmentSet(directory, interned, node, cpus)

    process = Forked.start(lambda messages: _serve(make, messages)) if size_bytes >= WORTHWHILE_BYTES else None
    return make(interned) if process is None else SegmentProcess(process, interned)


class SegmentProcess:
    def __init__(self, process: Forked, interned: Interned) -> None:
        self.rows: dict[str, int] = {}
        self.size_bytes = 0
        self.spans: dict[str, Span] = {}
        self._process = process
        self._interned = interned
        self._told = (0, 0, 0, 0)

    def add_samples(self, batch: SampleBatch, is_idle: npt.NDArray[np.bool_], since_ns: int) -> None:
        self._send("add_samples", batch, is_idle, since_ns)

    def add_rows(self, table: str, rows: Iterable[Row]) -> None:
        self._send("add_rows", table, list(rows))

    def add_gap(self, gap: Gap) -> None:
        self._send("add_gap", gap)

    def close_before(self, time_ns: int) -> None:
        self._send("close_before", time_ns)

    def close(self) -> None:
        self._send("close")
        self.rows, self.size_bytes, self.spans = self._answer()
        self._process.close()

    def abandon(self) -> None:
        self._process.close()

    def _send(self, name: str, *words: object) -> None:
        growth = self._interned.growth_since(self._told)
        self._told = self._interned.sizes()
        try:
            self._process.send((growth, name, words))
        except OSError:
            self._answer()

    def _answer(self) -> Any:
        """How it ended; that is an error if it did so before it was told to."""
        try:
            answer = self._process.receive()
        except (EOFError, OSError):
            answer = RecordingError("the process that writes the recording was ended from outside")
        if isinstance(answer, Exception):
            raise answer
        return answer


def _serve(make: Callable[[Interned], Segments], messages: Messages) -> None:
    interned = Interned()
    segments = make(interned)
    name = ""
    try:
        while name != "close":
            growth, name, words = messages.receive()
            interned.grow(growth)
            getattr(segments, name)(*words)
        messages.send((segments.rows, segments.size_bytes, segments.spans))
    except EOFError:
        segments.abandon()
    except Exception as error:  # noqa: BLE001 - raised in the process that asked for it
        segments.abandon()
        messages.send(error)
