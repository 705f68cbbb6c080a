"""Segments that go away while they are read, and what is told of a window."""

import shutil
from itertools import pairwise

from tests.drawn_recording import at, draw

from necroscope.model.reading import Gap
from necroscope.segment.seal_writer import seal
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit
from necroscope.store.window_reading import WindowReading


def ask(store: Store, question, from_s: float = 0, to_s: float = 1):
    reading = WindowReading(store, at(from_s), at(to_s), TimeLimit())
    return reading, list(reading.segments(question))


def sample_times(reading: WindowReading, reader) -> list[int]:
    return [
        time
        for span in reading.slices(reader)
        for time in reader.read("samples", *span, ["time"]).column("time").to_pylist()
    ]


def test_a_segment_that_is_sealed_meanwhile_is_asked_anew(tmp_path):
    recording = draw(tmp_path / "r", "a  a", live=1)
    store = Store.open(recording)
    reading = WindowReading(store, at(0), at(1), TimeLimit())

    def question(reader):
        if reader.is_live:
            seal(reader.path)
        return sample_times(reading, reader)

    assert list(reading.segments(question)) == [[at(0), at(0.1)]]
    assert reading.left_out() == [
        "2025-10-09T08:53:20.100Z to 2025-10-09T08:53:21.000Z: the recording ends before it"
    ]


def test_a_segment_that_is_removed_meanwhile_is_left_out_and_told(tmp_path):
    recording = draw(tmp_path / "r", "a  a", "time: 0.5\n b")
    store = Store.open(recording)
    shutil.rmtree(store.catalog.segments[0].path)
    reading = WindowReading(store, at(0), at(0.6), TimeLimit())
    store.catalog.refresh = lambda: None
    assert list(reading.segments(lambda reader: sample_times(reading, reader))) == [[at(0.5)]]
    assert any("was removed" in words for words in reading.left_out())


def test_pieces_cover_the_window_once(tmp_path, monkeypatch):
    monkeypatch.setattr("necroscope.store.window_reading._ROWS_AT_ONCE", 1)
    recording = draw(tmp_path / "r", "time: 0  0.1  0.2  0.3  0.9\n a  a  a  a  a")
    reading = WindowReading(Store.open(recording), at(0.1), at(2), TimeLimit())
    assert list(reading.segments(lambda reader: sample_times(reading, reader))) == [
        [at(0.1), at(0.2), at(0.3), at(0.9)]
    ]
    [spans] = reading.segments(lambda reader: list(reading.slices(reader)))
    assert len(spans) > 2
    assert all(before[1] == after[0] for before, after in pairwise(spans))


def test_recorded_is_the_window_without_holes_and_gaps(tmp_path):
    gaps = [
        Gap("samples", at(9.6), at(9.7), "x"),
        Gap("samples", at(9.8), at(9.9), "x", 1),
        Gap("nics", at(9), at(10), "x"),
    ]
    store = Store.open(draw(tmp_path / "r", "time: 0  1\n a  a", "time: 9  10\n b  b", gaps=gaps))
    reading, _ = ask(store, lambda reader: None, 0.5, 9.95)
    assert reading.recorded() == [(at(0.5), at(1) + 1), (at(9), at(9.6)), (at(9.7), at(9.95))]
    assert reading.recorded(frozenset({1})) == [
        (at(0.5), at(1) + 1),
        (at(9), at(9.6)),
        (at(9.7), at(9.8)),
        (at(9.9), at(9.95)),
    ]
    assert reading.answered() == (at(0.5), at(9.95))


def test_many_gaps_are_reported_in_few_words(tmp_path):
    gaps = [Gap("samples", at(0.1), at(0.2), f"cause {n}") for n in range(9)]
    reading, _ = ask(Store.open(draw(tmp_path / "r", "a", gaps=gaps, until=1)), lambda reader: None)
    assert reading.left_out()[-1] == "and 4 more gaps"
    assert len(reading.left_out()) == 6


def test_gaps_far_apart_are_not_told_as_one(tmp_path):
    gaps = [
        Gap("samples", at(second), at(second + 0.1), "overran", lost=1) for second in (0.1, 0.3, 8)
    ]
    reading, _ = ask(
        Store.open(draw(tmp_path / "r", "a", gaps=gaps, until=9)), lambda reader: None, 0, 9
    )
    assert reading.left_out() == [
        "2025-10-09T08:53:20.100Z to 2025-10-09T08:53:20.400Z: overran, 2 lost",
        "2025-10-09T08:53:28.000Z to 2025-10-09T08:53:28.100Z: overran, 1 lost",
    ]
