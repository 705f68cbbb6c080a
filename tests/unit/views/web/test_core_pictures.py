"""The core map of long stretches: hours joined, what is not read yet marked, what was not recorded kept apart."""

import json
import struct
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.drawn_recording import draw

from necroscope.store.query import Store
from necroscope.views.web import core_pictures
from necroscope.views.web.answers import NOT_READ_YET, NOT_RECORDED
from necroscope.views.web.core_pictures import BASE_NS, PART_NS, CorePictures

CPUS = [0, 1]
MINUTE = PART_NS // BASE_NS // 60


def hour_of(value: int, at: int = -1, peak: int = 0) -> dict[str, np.ndarray]:
    arrays = {}
    for name in (*core_pictures.MODES, "delay"):
        arrays[name] = np.full((2, PART_NS // BASE_NS), value, np.uint8)
        if at >= 0:
            arrays[name][1, at] = peak
    return arrays


@pytest.fixture
def pictures(tmp_path: Path) -> CorePictures:
    return CorePictures(Store.open(draw(tmp_path / "r", "    time:  0.0\n           main\n")))


def busy(answer: bytes) -> tuple[dict[str, Any], np.ndarray]:
    (length,) = struct.unpack_from("<I", answer)
    header = json.loads(answer[4 : 4 + length])
    start = -(-(4 + length) // 8) * 8
    shape = header["arrays"][0]["shape"]
    return header, np.frombuffer(answer, np.uint8, shape[0] * shape[1], start).reshape(shape)


def test_the_worst_of_a_column_is_kept_though_it_lasted_five_seconds(pictures: CorePictures, monkeypatch) -> None:
    hours = {10: hour_of(20), 11: hour_of(20, at=MINUTE * 30, peak=250)}
    monkeypatch.setattr(CorePictures, "_read", lambda self, key: hours[key.hour])
    header, cells = busy(pictures.answer(10 * PART_NS, 12 * PART_NS, 120, CPUS, with_delay=False))
    while not header["is_complete"]:
        header, cells = busy(pictures.answer(10 * PART_NS, 12 * PART_NS, 120, CPUS, with_delay=False))
    assert header["arrays"][0]["name"] == "busy"
    assert cells[1, 90] == 250
    assert (np.delete(cells[1], 90) == 20).all()
    assert (cells[0] == 20).all()


def test_what_was_not_recorded_loses_against_what_was(pictures: CorePictures, monkeypatch) -> None:
    hours = {10: hour_of(NOT_RECORDED, at=5, peak=0), 11: hour_of(NOT_RECORDED)}
    monkeypatch.setattr(CorePictures, "_asked", lambda self, wanted, *_: [core_pictures._done(hours[hour]) for hour in wanted])
    _, cells = busy(pictures.answer(10 * PART_NS, 12 * PART_NS, 120, CPUS, with_delay=False))
    assert cells[1, 0] == 0
    assert (cells[0] == NOT_RECORDED).all()


def test_what_is_not_read_yet_is_said_to_be_so(pictures: CorePictures, monkeypatch) -> None:
    never: Future = Future()
    monkeypatch.setattr(CorePictures, "_asked", lambda *_: [core_pictures._done(hour_of(7)), never])
    monkeypatch.setattr(core_pictures, "_PATIENCE_S", 0.0)
    began = time.monotonic()
    header, cells = busy(pictures.answer(10 * PART_NS, 12 * PART_NS, 120, CPUS, with_delay=False))
    assert time.monotonic() - began < 5
    assert header["is_complete"] is False
    assert (cells[:, :60] == 7).all()
    assert (cells[:, 60:] == NOT_READ_YET).all()


def test_an_hour_is_read_once_unless_it_is_still_being_recorded(pictures: CorePictures, monkeypatch) -> None:
    read: list[int] = []
    monkeypatch.setattr(CorePictures, "_read", lambda self, key: read.append(key.hour) or hour_of(1))
    recorded_to = 11 * PART_NS + PART_NS // 2
    monkeypatch.setattr(Store, "info", lambda self: type("Info", (), {"to_ns": recorded_to})())
    for _ in range(3):
        pictures.answer(10 * PART_NS, 12 * PART_NS, 120, CPUS, with_delay=False)
    pictures._readers.shutdown(wait=True)
    assert sorted(read) == [10, 11]
    recorded_to += 1
    pictures.answer(10 * PART_NS, 12 * PART_NS, 120, CPUS, with_delay=False)
    assert sorted(read) == [10, 11, 11]
