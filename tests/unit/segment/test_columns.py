"""Values that do not fit are clamped or become null; a batch is never lost for one of them."""

import pytest

from necroscope.model.tables import Type
from necroscope.segment import columns
from necroscope.segment.columns import decode_column, encode_column


def round_trip(kind: Type, values: list[object]) -> list[object]:
    buffers = encode_column(kind, values)  # type: ignore[arg-type]
    assert len(buffers) == columns.BUFFER_COUNT[kind]
    return decode_column(kind, len(values), [memoryview(buffer) for buffer in buffers])  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("kind", "values", "stored"),
    [
        (Type.INT16, [1 << 20, -(1 << 20), 5], [32767, -32768, 5]),
        (Type.INT32, [1 << 40, None, -1], [2147483647, None, -1]),
        (Type.INT64, [1 << 70, -(1 << 70)], [(1 << 63) - 1, -(1 << 63)]),
        (
            Type.INT64,
            [1.9, "17", "nonsense", float("nan"), float("inf")],
            [1, 17, None, None, None],
        ),
        (Type.BOOL, [True, None, False, 1], [True, None, False, True]),
        (Type.UTF8, ["a\udc80b", None, 5], ["a\\udc80b", None, "5"]),
        (Type.CATEGORY, ["a\udc80b", None, "a\udc80b"], ["a\\udc80b", None, "a\\udc80b"]),
        (Type.CATEGORY, [None, None], [None, None]),
        (Type.CATEGORY, [["unhashable"], "x"], ["['unhashable']", "x"]),
        (Type.INT32_LIST, [[1 << 40, 1], None, []], [[2147483647, 1], None, []]),
        (Type.INT32_LIST, [["x"], 5], [[0], None]),
    ],
)
def test_what_does_not_fit_is_clamped_or_null(kind, values, stored):
    assert round_trip(kind, values) == stored


@pytest.mark.parametrize("kind", list(Type))
def test_column_without_rows(kind):
    assert round_trip(kind, []) == []


@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 1000])
def test_bitmaps_of_any_length_keep_their_nulls(count):
    values = [None if i % 3 == 0 else i for i in range(count)]
    assert round_trip(Type.INT32, values) == values
    truths = [i % 5 == 0 for i in range(count)]
    assert round_trip(Type.BOOL, truths) == truths


def test_texts_too_long_for_a_frame_are_cut(monkeypatch):
    monkeypatch.setattr(columns, "TEXT_LIMIT", 10)
    assert round_trip(Type.UTF8, ["short", "long" * 10]) == ["short", "longl"]
