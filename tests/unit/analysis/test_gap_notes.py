"""Gaps as people read them."""

from tests.drawn_node import at

from necroscope.analysis.gap_notes import gap_notes
from necroscope.model.reading import Gap


def test_the_same_time_in_several_tables_counts_once() -> None:
    gaps = [
        Gap(table, at(0), at(20), "the recorder stood still")
        for table in ("cores", "memory", "samples")
    ]
    assert gap_notes(gaps) == ["the recorder stood still: 1 gap in cores, memory, samples, 20 s"]


def test_several_gaps_of_one_cause_are_a_line() -> None:
    gaps = [
        Gap("samples", at(0), at(2), "the rings were full"),
        Gap("samples", at(5), at(6), "the rings were full"),
    ]
    assert gap_notes(gaps) == ["the rings were full: 2 gaps in samples, 3 s together"]


def test_what_is_damaged_comes_first() -> None:
    gaps = [
        Gap("cores", at(0), at(90), "slow"),
        Gap("*", at(5), at(6), "segment 2025: manifest.json fails its checksum"),
    ]
    assert gap_notes(gaps)[0].startswith("damaged, cannot be read: segment 2025")
