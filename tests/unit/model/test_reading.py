"""Which gaps are one."""

from necroscope.model.reading import Gap, merge_gaps


def test_merged_gaps_keep_their_reach_and_what_was_lost():
    gaps = [
        Gap("samples", 5, 6, "overran", 0, 2),
        Gap("samples", 1, 2, "overran", 0, 3),
        Gap("samples", 1, 9, "overran", 1),
    ]
    assert merge_gaps(gaps) == [
        Gap("samples", 1, 6, "overran", 0, 5),
        Gap("samples", 1, 9, "overran", 1),
    ]


def test_gaps_are_joined_only_where_they_lie_close_enough():
    gaps = [
        Gap("samples", 50, 60, "overran"),
        Gap("samples", 1, 9, "overran"),
        Gap("samples", 10, 20, "overran"),
    ]
    assert merge_gaps(gaps, 1) == [
        Gap("samples", 1, 20, "overran"),
        Gap("samples", 50, 60, "overran"),
    ]
    assert merge_gaps(gaps, 30) == [Gap("samples", 1, 60, "overran")]
