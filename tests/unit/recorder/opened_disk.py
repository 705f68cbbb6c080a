"""A disk as tests open, feed and question it."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from necroscope.model.units import NS_PER_S
from necroscope.recorder.disk import Disk
from necroscope.recorder.retention import RetentionLimits
from necroscope.recorder.sink import RowBatch
from necroscope.segment.journal import SegmentHeader
from necroscope.segment.recording import (
    PINS_FILE,
    Pin,
)
from necroscope.store.query import Store

START_NS = 1_760_000_000 * NS_PER_S


def open_disk(directory: Path, max_bytes: int = 1 << 30) -> Disk:
    def header(segment: str, start_ns: int) -> SegmentHeader:
        return SegmentHeader(segment, "node-7", "boot", start_ns, 2)

    return Disk(directory, header, RetentionLimits(max_bytes, 1 << 60, 1 << 30), 0.01, START_NS)


def write(disk: Disk, second: int) -> None:
    row = (START_NS + second * NS_PER_S, 0, NS_PER_S, *(0,) * 9)
    disk.write(RowBatch({"cores": [row]}), 0, START_NS + second * NS_PER_S)


def says(disk: Disk, words: str) -> bool:
    """Whether it says so within a moment."""
    deadline, notices = time.monotonic() + 10, ""
    while words not in notices and time.monotonic() < deadline:
        notices += "\n".join(disk.take_notices())
        time.sleep(0.01)
    return words in notices


def wait_for_row(directory: Path) -> None:
    deadline = time.monotonic() + 10
    while (
        not Store.open(directory).rows("cores", 0, 1 << 62).num_rows and time.monotonic() < deadline
    ):
        time.sleep(0.01)


def wait_for_all_before_a_pin(disk: Disk, directory: Path) -> None:
    """Until what was handed over is done: a pin is handed over after it, and its file shows."""
    disk.pin(Pin(START_NS, START_NS + NS_PER_S, "a test's"))
    deadline = time.monotonic() + 10
    while not (directory / PINS_FILE).exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def space(free_ratio: float) -> Callable[..., SimpleNamespace]:
    """A file system's numbers, this much of it free."""
    return lambda _: SimpleNamespace(
        f_blocks=1000, f_bavail=round(1000 * free_ratio), f_frsize=4096
    )


def refuse(number: int) -> Callable[..., Any]:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return refused
