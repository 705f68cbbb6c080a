"""Samples as arrays, and the time that one of them stands for."""

import numpy as np
import pyarrow as pa
import pytest

from necroscope.stacks.samples import codes, flags_of, numbers, sample_period_ns

MS = 1_000_000
TEXTS = ["a", None, "b", "a"]


def period_ms(*times_ms: float, cpu: int = 0) -> float:
    time_ns = np.array([round(time * MS) for time in times_ms], dtype=np.int64)
    return sample_period_ns(time_ns, np.full(len(time_ns), cpu)) / MS


def test_a_sample_stands_for_the_usual_distance_of_a_busy_core_whatever_holes_it_leaves_when_it_idles() -> (
    None
):
    assert period_ms(0, 10, 20, 30, 40) == 10
    assert period_ms(0, 10, 500, 510, 900, 2000) == 10


def test_two_samples_at_once_are_no_period() -> None:
    assert period_ms(0, 0.001, 10, 10.001, 20) == pytest.approx(10, rel=0.001)


def test_samples_of_other_cores_are_not_in_between() -> None:
    time_ns = np.array([0, 3, 10, 13, 20, 23]) * MS
    assert sample_period_ns(time_ns, np.array([0, 1, 0, 1, 0, 1])) == 10 * MS


def test_a_core_that_was_sampled_once_has_the_recorders_own_rate() -> None:
    assert period_ms(5) == period_ms() == pytest.approx(1000 / 97)


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([pa.array(TEXTS)]),
        pa.chunked_array([pa.array(TEXTS).dictionary_encode()]),
        pa.chunked_array(
            [pa.array(TEXTS[:2]).dictionary_encode(), pa.array(TEXTS[2:]).dictionary_encode()]
        ),
        pa.chunked_array([pa.array(TEXTS[:1]), pa.array(TEXTS[1:])]),
    ],
)
def test_a_column_is_coded_however_it_is_stored(column: pa.ChunkedArray) -> None:
    places, values = codes(column)
    assert [None if place < 0 else values[int(place)].as_py() for place in places] == TEXTS
    assert flags_of(column, "a".__eq__).tolist() == [True, False, False, True]


def test_an_empty_column_has_no_codes() -> None:
    for column in (
        pa.chunked_array([], pa.dictionary(pa.int32(), pa.utf8())),
        pa.chunked_array([], pa.utf8()),
    ):
        places, values = codes(column)
        assert (len(places), len(values)) == (0, 0)


def test_a_null_is_the_number_that_is_asked_for() -> None:
    rows = pa.table({"stack": pa.array([1, None], pa.int32())})
    assert numbers(rows, "stack").tolist() == [1, -3]
    assert numbers(rows, "stack", -1).tolist() == [1, -1]
