"""All sources of a node as the loop sees them: one that cannot start, or does not answer, says so."""

import errno
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.errors import NecroscopeError
from necroscope.model.clocks import ClockReading, TimeLine
from necroscope.model.reading import Source
from necroscope.recorder.node_sources import open_sources
from necroscope.settings import parse
from necroscope.sources import background
from necroscope.sources.background import Background
from necroscope.sources.sysfs import nics

# Those that ask daemons, file systems or drivers, which may hang.
ASKING = {"units", "containers", "facts", "ray", "nics"}


class StoppedClock:
    def read(self, *, with_log_clock: bool = True) -> ClockReading:
        return ClockReading(0, 0, 0)


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Source]]:
    root = make_root(tmp_path, 2, queues=2)
    write_files(root, {"sys/devices/system/cpu/possible": "0-1\n"})
    (root / "run/systemd/system").mkdir(parents=True)
    monkeypatch.setattr(nics, "is_network_of_node", lambda _: True)
    opened = open_sources(parse({"host-root": str(root)}), StoppedClock(), TimeLine(0))
    yield opened.sources
    monkeypatch.undo()
    opened.close()


def is_in_trouble(source: Source, second: int) -> bool:
    try:
        reading = source.read(at_second(second))
    except NecroscopeError:
        return True
    return reading.trouble is not None or bool(reading.parts) or bool(reading.gaps)


def test_a_source_that_cannot_start_a_thread_or_process_is_in_trouble_until_it_can(
    sources: list[Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: set[str] = set()
    current = ""

    def refuse_thread(_: threading.Thread) -> None:
        refused.add(current)
        raise RuntimeError("can't start new thread")

    def refuse_process(*_: object, **__: object) -> None:
        refused.add(current)
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(threading.Thread, "start", refuse_thread)
    monkeypatch.setattr(subprocess, "Popen", refuse_process)
    for source in sources:
        current = source.name
        is_in_trouble(source, 0)
        if current in refused:
            assert [is_in_trouble(source, second) for second in (1, 5, 20, 21, 40)] == [True] * 5
    assert refused >= ASKING


def test_a_source_that_does_not_answer_is_in_trouble(
    sources: list[Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    current, start = "", Background.start

    def start_in_vain(work: Background[object], _: object) -> None:
        asked.add(current)
        start(work, threading.Event().wait)

    monkeypatch.setattr(Background, "start", start_in_vain)
    monkeypatch.setattr(Background, "close", lambda *_: None)
    for source in sources:
        current = source.name
        with monkeypatch.context() as patient:
            source.read(at_second(0)) if source.name in ASKING else None
            patient.setattr(background, "PATIENCE_S", 0.0)
            assert (source.name not in asked) or is_in_trouble(source, 11)
    assert asked == ASKING
