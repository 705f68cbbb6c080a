"""A recording with a disk that writes into it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.recorder.opened_disk import START_NS, open_disk, space

from necroscope.recorder import disk as disk_module
from necroscope.recorder.disk import Disk
from necroscope.segment.recording import (
    Identity,
    make_recording,
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    make_recording(tmp_path / "recording", Identity("node-7", "boot", "0"))
    return tmp_path / "recording"


@pytest.fixture
def disk(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    monkeypatch.setattr(disk_module.os, "statvfs", space(0.5))
    opened = open_disk(directory)
    opened.start_segment(START_NS)
    yield opened
    if opened._thread.is_alive():
        opened.close()
