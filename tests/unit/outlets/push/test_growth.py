"""A recording has come to rest when it has not grown for a while of our own clock."""

from pathlib import Path

from tests.written_recording import WrittenSegment, new_recording

from necroscope.outlets.push.growth import STILL_S, Growth, Journals
from necroscope.store.query import Store


def test_rest_is_news_once_and_growth_ends_it() -> None:
    now = [0.0]
    growth = Growth(lambda: now[0])
    assert growth.observe(5) == (False, True)
    now[0] = STILL_S - 1
    assert growth.observe(5) == (False, False)
    now[0] = STILL_S + 1
    assert growth.observe(5) == (True, True)
    assert growth.observe(5) == (True, False)
    assert growth.observe(6) == (False, True)
    assert not growth.is_still


def test_a_time_line_that_goes_back_is_growth_too() -> None:
    growth = Growth(lambda: 0.0)
    growth.observe(5)
    assert growth.observe(4) == (False, True)


def test_a_journal_that_stands_still_while_another_grows_was_left(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    old = WrittenSegment(recording, 0).ticks(0, 10)
    store, journals, left = Store.open(recording), Journals(), dict[str, int]()

    def growing() -> list[str]:
        store.catalog.refresh()
        return [segment.name for segment in journals.growing(store.catalog.segments, left)]

    assert growing() == [old.path.name]
    assert growing() == [old.path.name], "nobody else grows: a disk may hang"
    new = WrittenSegment(recording, 300).ticks(300, 310)
    assert growing() == [new.path.name]
    assert growing() == [new.path.name]
    assert list(left) == [old.path.name]
    old.ticks(10, 20)
    assert old.path.name in growing()
    (old.path / "journal").unlink()
    old.path.rmdir()
    growing()
    assert old.path.name not in left
