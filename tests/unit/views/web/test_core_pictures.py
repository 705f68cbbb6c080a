"""The core map of long stretches: hours joined, what is not read yet marked, what was not recorded
kept apart.
"""

import json
import struct
import time
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.drawn_recording import draw
from tests.written_recording import WrittenSegment, new_recording
from tests.written_recording import at as written_at

from necroscope.model.core_shares import MINUTE_NS
from necroscope.store.query import Store
from necroscope.views.web import core_pictures
from necroscope.views.web.answers import NOT_READ_YET, NOT_RECORDED
from necroscope.views.web.core_pictures import BASE_NS, PART_NS, CorePictures

CPUS = [0, 1]
MINUTES = 60
FINE = PART_NS // BASE_NS


def hour_of(
    value: int, at: int = -1, peak: int = 0, columns: int = MINUTES
) -> dict[str, np.ndarray]:
    arrays = {}
    for name in (*core_pictures.MODES, "delay"):
        arrays[name] = np.full((2, columns), value, np.uint8)
        if at >= 0:
            arrays[name][1, at] = peak
    return arrays


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch) -> CorePictures:
    """Of a recording of the hours 10 and 11."""
    info = type("Info", (), {"from_ns": 10 * PART_NS, "to_ns": 12 * PART_NS, "tables": {}})()
    monkeypatch.setattr(Store, "info", lambda self: info)
    return CorePictures(Store.open(draw(tmp_path / "r", "    time:  0.0\n           main\n")))


def busy(answer: bytes) -> tuple[dict[str, Any], np.ndarray]:
    (length,) = struct.unpack_from("<I", answer)
    header = json.loads(answer[4 : 4 + length])
    start = -(-(4 + length) // 8) * 8
    shape = header["arrays"][0]["shape"]
    return header, np.frombuffer(answer, np.uint8, shape[0] * shape[1], start).reshape(shape)


def whole(pictures: CorePictures, columns: int) -> np.ndarray:
    """The picture of hours 10 and 11, when all of it was read."""
    header = {"is_complete": False}
    while not header["is_complete"]:
        header, cells = busy(
            pictures.answer(10 * PART_NS, 12 * PART_NS, columns, CPUS, with_delay=False)
        )
    assert header["arrays"][0]["name"] == "busy"
    return cells


def test_the_worst_of_a_column_is_kept_though_it_lasted_a_minute(
    pictures: CorePictures, monkeypatch
) -> None:
    hours = {10: hour_of(20), 11: hour_of(20, at=30, peak=250)}
    monkeypatch.setattr(CorePictures, "_read", lambda self, key: hours[key.hour])
    cells = whole(pictures, 60)
    assert cells[1, 45] == 250
    assert (np.delete(cells[1], 45) == 20).all()
    assert (cells[0] == 20).all()


def test_columns_below_a_minute_are_read_at_five_seconds(
    pictures: CorePictures, monkeypatch
) -> None:
    monkeypatch.setattr(
        CorePictures,
        "_read",
        lambda self, key: hour_of(20, at=1, peak=250, columns=PART_NS // key.base_ns),
    )
    cells = whole(pictures, 2 * FINE)
    assert np.flatnonzero(cells[1] == 250).tolist() == [1, FINE + 1]


def test_minutes_stand_for_what_is_not_read_finer_yet(pictures: CorePictures, monkeypatch) -> None:
    found = {MINUTE_NS: core_pictures._done(hour_of(90)), BASE_NS: Future()}
    monkeypatch.setattr(CorePictures, "_has_minutes", lambda self: True)
    monkeypatch.setattr(
        CorePictures, "_request", lambda self, hours, base_ns, *_: [found[base_ns]] * len(hours)
    )
    monkeypatch.setattr(core_pictures, "_PATIENCE_S", 0.0)
    header, cells = busy(
        pictures.answer(10 * PART_NS, 12 * PART_NS, 2 * FINE, CPUS, with_delay=False)
    )
    assert header["is_complete"] is False
    assert (cells == 90).all()


def test_what_was_not_recorded_loses_against_what_was(pictures: CorePictures, monkeypatch) -> None:
    hours = {10: hour_of(NOT_RECORDED, at=5, peak=0), 11: hour_of(NOT_RECORDED)}
    monkeypatch.setattr(
        CorePictures,
        "_request",
        lambda self, wanted, *_: [core_pictures._done(hours[hour]) for hour in wanted],
    )
    _, cells = busy(pictures.answer(10 * PART_NS, 12 * PART_NS, 60, CPUS, with_delay=False))
    assert cells[1, 2] == 0
    assert (cells[0] == NOT_RECORDED).all()


def test_what_is_not_read_yet_is_said_to_be_so(pictures: CorePictures, monkeypatch) -> None:
    never: Future = Future()
    monkeypatch.setattr(
        CorePictures, "_request", lambda *_: [core_pictures._done(hour_of(7)), never]
    )
    monkeypatch.setattr(core_pictures, "_PATIENCE_S", 0.0)
    began = time.monotonic()
    header, cells = busy(pictures.answer(10 * PART_NS, 12 * PART_NS, 120, CPUS, with_delay=False))
    assert time.monotonic() - began < 5
    assert header["is_complete"] is False
    assert (cells[:, :60] == 7).all()
    assert (cells[:, 60:] == NOT_READ_YET).all()


def test_an_hour_is_read_once_unless_it_is_still_being_recorded(
    pictures: CorePictures, monkeypatch
) -> None:
    read: list[int] = []
    monkeypatch.setattr(
        CorePictures, "_read", lambda self, key: read.append(key.hour) or hour_of(1)
    )
    recorded_to = 11 * PART_NS + PART_NS // 2
    monkeypatch.setattr(
        Store,
        "info",
        lambda self: type(
            "Info", (), {"from_ns": 10 * PART_NS, "to_ns": recorded_to, "tables": {}}
        )(),
    )
    for _ in range(3):
        pictures.answer(10 * PART_NS, 12 * PART_NS, 120, CPUS, with_delay=False)
    pictures._readers.shutdown(wait=True)
    assert sorted(read) == [10, 11]
    recorded_to += 1
    pictures.answer(10 * PART_NS, 12 * PART_NS, 120, CPUS, with_delay=False)
    assert sorted(read) == [10, 11, 11]


def test_a_long_recording_is_read_before_anybody_asks(pictures: CorePictures, monkeypatch) -> None:
    read: list[int] = []
    monkeypatch.setattr(CorePictures, "_recorded_hours", lambda *_: range(10, 14))
    monkeypatch.setattr(
        CorePictures, "_read", lambda self, key: read.append(key.hour) or hour_of(30)
    )
    pictures.begin(lambda: CPUS).result()
    wait([part for _, part in pictures._parts.values()])
    assert sorted(read) == [10, 11, 12, 13]


def test_a_century_is_answered_from_the_hours_that_were_recorded(
    pictures: CorePictures, monkeypatch
) -> None:
    read: list[int] = []
    monkeypatch.setattr(
        CorePictures, "_read", lambda self, key: read.append(key.hour) or hour_of(30)
    )
    header, cells = busy(pictures.answer(0, 20 * PART_NS, 20, CPUS, with_delay=False))
    while not header["is_complete"]:
        header, cells = busy(pictures.answer(0, 20 * PART_NS, 20, CPUS, with_delay=False))
    assert cells[0].tolist() == [NOT_RECORDED] * 10 + [30, 30] + [NOT_RECORDED] * 8
    pictures.answer(0, 1 << 62, 20, CPUS, with_delay=False)
    assert sorted(read) == [10, 11]


def test_a_window_without_a_recording_has_nothing(pictures: CorePictures) -> None:
    header, cells = busy(pictures.answer(20 * PART_NS, 30 * PART_NS, 20, CPUS, with_delay=True))
    assert header["is_complete"] is True
    assert (cells == NOT_RECORDED).all()


def test_damage_is_reported_in_a_long_stretch_too(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    for start in (0, 300):
        path = (
            WrittenSegment(recording, start).ticks(start, start + 300).seal().path.with_suffix("")
        )
    for file in (path / "cores.parquet", path / "core_minutes.parquet"):
        content = bytearray(file.read_bytes())
        content[len(content) // 3] ^= 1
        file.write_bytes(content)
    pictures = CorePictures(Store.open(recording))
    header = {"is_complete": False}
    while not header["is_complete"]:
        header, _ = busy(
            pictures.answer(written_at(0), written_at(600), 10, CPUS, with_delay=False)
        )
    (found,) = header["left_out"]
    assert f"segment {path.name}" in found
