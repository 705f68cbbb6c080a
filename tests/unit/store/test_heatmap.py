"""Heat maps of drawn recordings: rows are offsets, columns are seconds."""

from pathlib import Path

import numpy as np
import pytest
from tests.drawn_recording import NS, START_NS, at, draw

from necroscope.errors import UsageError
from necroscope.model.reading import Gap
from necroscope.store.heatmap import Cell, read_heat_map
from necroscope.store.query import Store
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit


def heat_map(path: Path, from_s: float, to_s: float, selection: Selection = Selection(), **options):  # noqa: B008 - it is frozen
    return read_heat_map(Store.open(path), at(from_s), at(to_s), selection, **options)


def picture(heat) -> list[list[int | None]]:
    """Weights by row, None where nothing is known."""
    return np.where(heat.is_known, heat.weights, None).tolist()


def test_columns_are_seconds_and_rows_the_offset_within_them(tmp_path):
    recording = draw(
        tmp_path / "r",
        "time: 0.1  0.3  0.35  1.0  1.99  2.5\n cpu: 0  0  1  1  0  0\n a  a  a  a  a  a",
        until=3,
    )
    heat = heat_map(recording, 0, 3, rows=4)
    assert picture(heat) == [[1, 1, 0], [2, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert heat.column_totals.tolist() == [3, 2, 1]
    assert (heat.start_ns, heat.column_ns, heat.samples) == (at(0), NS, 6)
    assert heat.busiest == Cell(1, 0, at(0.25), at(0.5), 2)
    assert heat.quietest == Cell(2, 0, at(0.5), at(0.75), 0)
    assert heat.left_out == []
    assert picture(heat_map(recording, 0, 3, Selection.of(cpus=[1]), rows=2)) == [
        [1, 1, 0],
        [0, 0, 0],
    ]


def test_columns_of_two_seconds_begin_at_even_seconds_and_are_known_only_in_the_window(tmp_path):
    recording = draw(tmp_path / "r", "time: 0.5  1.5  2.5  3.5\n a  a  a  a", until=6)
    heat = heat_map(recording, 1, 4, rows=2, column_s=2)
    assert heat.start_ns == START_NS
    assert picture(heat) == [[None, 1], [1, 1]]


def test_rows_that_do_not_divide_a_second_begin_at_whole_nanoseconds(tmp_path):
    recording = draw(
        tmp_path / "r",
        "time: 0.333333333  0.333333334  0.666666666  0.666666667\n a  a  a  a",
        until=1,
    )
    assert heat_map(recording, 0, 1, rows=3).weights[:, 0].tolist() == [1, 2, 1]


def test_weights_idle_samples_and_frames_count_as_in_a_flame_graph(tmp_path):
    recording = draw(
        tmp_path / "r",
        "pid: 0  0  7\n weight: 2  3  4\n x@kernel  intel_idle@kernel  main",
        until=1,
    )
    heat = heat_map(recording, 0, 1, rows=1)
    assert (heat.samples, heat.left_out) == (
        6,
        ["3 samples are idle or in another state that was not asked for"],
    )
    assert heat_map(recording, 0, 1, Selection.of(frames="main")).samples == 4


@pytest.mark.parametrize("live", [0, 1])
def test_a_last_sample_out_of_order_still_counts(tmp_path, live):
    recording = draw(
        tmp_path / "r", "time: 1.2  1.9  0.4\n weight: 1  10  100\n a  a  a", live=live
    )
    assert heat_map(recording, 0, 2, rows=1).column_totals.tolist() == [100, 11]


def test_cells_without_a_recording_are_unknown_not_zero(tmp_path):
    recording = draw(tmp_path / "r", "time: 0.5  1.5\n a  a", "time: 9.5  9.75\n b  b")
    heat = heat_map(recording, 0, 11, rows=2)
    assert heat.column_totals.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0]
    unknown = [None] * 7
    assert picture(heat) == [[0, 0, *unknown, None, None], [1, 1, *unknown, 2, None]]
    assert heat.quietest is not None
    assert heat.quietest.column == 0
    assert heat.left_out == [
        "2025-10-09T08:53:21.500Z to 2025-10-09T08:53:29.500Z: not in the recording",
        "2025-10-09T08:53:29.750Z to 2025-10-09T08:53:31.000Z: the recording ends before it",
    ]


def test_gaps_mask_cells_of_all_cores_or_of_the_one_that_is_asked_for(tmp_path):
    gaps = [
        Gap("samples", at(1), at(2), "overran"),
        Gap("samples", at(2), at(3), "overran", 1),
        Gap("*", at(3.4), at(3.6), "slept"),
    ]
    recording = draw(tmp_path / "r", "time: 0.5  1.25\n a  a", gaps=gaps, until=5)
    assert picture(heat_map(recording, 0, 5, rows=2)) == [[0, 1, 0, 0, 0], [1, None, 0, 0, 0]]
    one = heat_map(recording, 0, 5, Selection.of(cpus=[1]), rows=2)
    assert picture(one) == [[0, None, None, 0, 0], [0, None, None, 0, 0]]


def test_the_time_limit_leaves_the_rest_unknown(tmp_path):
    moments = iter([0.0, 0.5, 1.5])
    recording = draw(tmp_path / "r", "time: 0  0.9\n a  a", "time: 1  1.9\n a  a")
    heat = heat_map(recording, 0, 2, rows=1, limit=TimeLimit(1, clock=lambda: next(moments)))
    assert picture(heat) == [[2, None]]
    assert "was not read" in heat.left_out[0]


def test_nothing_recorded_has_no_busiest_cell(tmp_path):
    heat = heat_map(draw(tmp_path / "r", "time: 0\n a"), 50, 52)
    assert heat.weights.shape == (50, 2)
    assert not heat.is_known.any()
    assert (heat.busiest, heat.quietest, heat.samples) == (None, None, 0)


@pytest.mark.parametrize(
    "options", [{"rows": 0}, {"column_s": 0}, {"rows": 100_000}, {"rows": 10_000, "column_s": 1}]
)
def test_a_map_of_no_or_too_many_cells_is_refused(tmp_path, options):
    with pytest.raises(UsageError):
        heat_map(draw(tmp_path / "r", "a"), 0, 1_000_000, **options)
