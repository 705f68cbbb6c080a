"""Rows for dashboards: the worst core of each stretch, and nothing where nothing was recorded."""

from pathlib import Path

from tests.drawn_node import at, drawn_node
from tests.growing_recording import GrowingRecording

from necroscope.model.span import Span
from necroscope.model.units import format_moment
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit
from necroscope.views.web.worst_core_rows import worst_core_rows

DRAWN = """
core 0:  ..........
core 1:  ...kk.....
k: system  agent[1]  /  main > walk
"""


def test_the_core_that_was_held_is_named_with_its_share(tmp_path: Path) -> None:
    node = drawn_node(DRAWN).delay(4, 1, 0.25)
    recording = GrowingRecording(tmp_path / "r", node).grow(10)
    store = Store.open(recording.directory)
    answer = worst_core_rows(store, Span(at(0), at(20)), 20, [0, 1], TimeLimit())
    held = [one for one in answer["rows"] if one["system"] > 0.9]
    assert [one["system_core"] for one in held] == [1, 1]
    assert [one["softirq_delay_s"] for one in answer["rows"] if "softirq_delay_s" in one] == [0.25]
    # Ten seconds were recorded, of twenty that were asked for.
    assert answer["rows"][-1]["time"] < format_moment(at(10))
    assert answer["rows"][0]["time"] == format_moment(at(0))


def test_a_window_without_a_recording_has_no_rows(tmp_path: Path) -> None:
    recording = GrowingRecording(tmp_path / "r", drawn_node(DRAWN)).grow(10)
    store = Store.open(recording.directory)
    window = Span(at(1_000), at(1_100))
    assert worst_core_rows(store, window, 10, [0, 1], TimeLimit())["rows"] == []
    assert worst_core_rows(store, window, 10, [], TimeLimit())["rows"] == []
