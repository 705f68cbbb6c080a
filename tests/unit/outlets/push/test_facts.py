"""Facts: only what changed, only once, and what went."""

from pathlib import Path

from tests.written_recording import WrittenSegment, new_recording, row

from necroscope.outlets.push.facts import FactLedger
from necroscope.segment.reader import SegmentReader


def fact(seconds: float, kind: str, name: str, value: str | None) -> tuple[object, ...]:
    return row("facts", seconds, kind=kind, name=name, value=value)


def facts_of(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return [(row["kind"], row["name"], row["value"]) for row in rows]


def test_a_segment_that_repeats_all_facts_tells_only_changes(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    one = WrittenSegment(recording, 0).add(
        "facts", fact(1, "sysctl", "a", "1"), fact(1, "sysctl", "b", "1")
    )
    two = WrittenSegment(recording, 300).add(
        "facts", fact(301, "sysctl", "a", "1"), fact(301, "sysctl", "b", "2")
    )
    ledger = FactLedger({})
    assert len(ledger.news(SegmentReader(one.path), 0, ()).rows) == 2
    assert facts_of(ledger.news(SegmentReader(two.path), 0, ()).rows) == [("sysctl", "b", "2")]


def test_back_and_forth_is_reported_once_though_the_segment_is_read_again(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0)
    segment.add(
        "facts",
        fact(1, "sysctl", "a", "1"),
        fact(2, "sysctl", "a", "2"),
        fact(3, "sysctl", "a", "1"),
    )
    ledger, reader = FactLedger({}), SegmentReader(segment.path)
    first = ledger.news(reader, 0, ())
    assert [value for _, _, value in facts_of(first.rows)] == ["1", "2", "1"]
    assert ledger.news(reader, first.to_ns, ()).rows == []


def test_a_fact_that_is_gone_is_reported_with_null(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0)
    segment.add(
        "facts",
        fact(1, "module", "x", "1"),
        fact(2, "module", "x", None),
        fact(3, "module", "y", None),
    )
    assert facts_of(FactLedger({}).news(SegmentReader(segment.path), 0, ()).rows) == [
        ("module", "x", "1"),
        ("module", "x", None),
    ]


def test_what_went_while_nobody_recorded_is_gone_when_a_whole_segment_lacks_it(
    tmp_path: Path,
) -> None:
    recording = new_recording(tmp_path / "r")
    one = WrittenSegment(recording, 0).add(
        "facts", fact(1, "unit_file", "ecs.service", "enabled"), fact(1, "package", "p", "1")
    )
    ledger = FactLedger({})
    ledger.news(SegmentReader(one.path), 0, ())
    two = WrittenSegment(recording, 3600).add(
        "facts", fact(3601, "unit_file", "other.service", "enabled")
    )
    assert facts_of(ledger.news(SegmentReader(two.path), 0, ()).rows) == [
        ("unit_file", "other.service", "enabled")
    ]
    two.add("events", row("events", 3800, kind="x")).seal()
    sealed = SegmentReader(two.path.with_suffix(""))
    assert facts_of(ledger.news(sealed, 0, ()).rows) == [("unit_file", "ecs.service", None)]
    assert ledger.news(sealed, 0, ()).rows == []


def test_a_short_segment_says_nothing_about_what_it_lacks(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    ledger = FactLedger({"unit_file\tecs.service": "x"})
    segment = (
        WrittenSegment(recording, 0)
        .add("facts", fact(1, "unit_file", "a", "1"), fact(20, "unit_file", "b", "1"))
        .seal()
    )
    assert len(ledger.news(SegmentReader(segment.path.with_suffix("")), 0, ()).rows) == 2


def test_labels_that_the_batch_names_are_left_to_it(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0)
    segment.add("facts", fact(1, "label", "zone", "a"), fact(1, "label", "pool", "b"))
    assert facts_of(FactLedger({}).news(SegmentReader(segment.path), 0, {"zone"}).rows) == [
        ("label", "pool", "b")
    ]


def test_very_many_facts_come_in_several_batches_each_once(tmp_path: Path) -> None:
    segment = WrittenSegment(new_recording(tmp_path / "r"), 0)
    segment.add("facts", *(fact(1, "package", f"p{number}", "1") for number in range(7000)))
    ledger, reader, names, after_ns = FactLedger({}), SegmentReader(segment.path), [], 0
    for _ in range(3):
        found = ledger.news(reader, after_ns, ())
        names += [name for _, name, _ in facts_of(found.rows)]
        after_ns = found.to_ns
    assert not found.is_cut
    assert sorted(names) == sorted(f"p{number}" for number in range(7000))
