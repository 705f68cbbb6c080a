"""A stretch of time by one convention: from its first moment to before its last."""

import pytest

from necroscope.errors import UsageError
from necroscope.model.span import Span, merge


def test_the_end_belongs_to_the_next_span() -> None:
    span = Span(10, 20)
    assert [span.contains(time_ns) for time_ns in (9, 10, 19, 20)] == [False, True, True, False]
    assert not span.overlaps(Span(20, 30))
    assert span.overlaps(Span(19, 30))
    assert not Span(20, 30).overlaps(span)


def test_spans_that_touch_are_merged_and_those_apart_only_within_the_gap() -> None:
    spans = [Span(30, 40), Span(0, 10), Span(10, 20), Span(5, 7)]
    assert merge(spans) == [(0, 20), (30, 40)]
    assert merge(spans, gap_ns=10) == [(0, 40)]
    assert merge([]) == []


def test_a_span_that_ends_before_it_begins_cannot_be_asked_for() -> None:
    with pytest.raises(UsageError, match="is not before"):
        Span.parse("2026-04-15", "2026-04-14", 0)
