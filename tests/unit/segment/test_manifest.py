"""A manifest comes back as it was written, or not at all."""

import pytest

from necroscope.errors import CorruptData, RecordingError
from necroscope.model.reading import Gap
from necroscope.segment.checksum import write_checked
from necroscope.segment.manifest import Manifest, TableEntry, merge_gaps, read_manifest


def manifest(**changes: object) -> Manifest:
    tables = {
        "cores": TableEntry(3, 100, 50, 90, [(0, 4, 1), (4, 96, 2)]),
        "stacks": TableEntry(1, 9, 0, 0, [(0, 9, 3)]),
    }
    values = {
        "schema": 1,
        "segment": "s",
        "node": "n",
        "boot_id": "b",
        "from_ns": 60,
        "to_ns": 80,
        "cpus": None,
        "tables": tables,
    }
    return Manifest(
        **(values | {"gaps": [Gap("cores", 1, 2, "why", None, 4)], "idle_samples": 7} | changes)
    )  # type: ignore[arg-type]


def test_manifest_comes_back(tmp_path):
    manifest().write(tmp_path)
    assert read_manifest(tmp_path) == manifest()


def test_reach_covers_tables_that_go_beyond_the_time_recorded():
    assert manifest().reach == (50, 90)
    assert manifest(from_ns=10, to_ns=100).reach == (10, 100)


def test_newer_schema_asks_for_an_upgrade(tmp_path):
    manifest(schema=2).write(tmp_path)
    with pytest.raises(RecordingError, match="schema 2"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"schema": 1},
        {"schema": 1, "tables": 5, "gaps": []},
        {"schema": 1, "tables": {"a": {}}},
    ],
)
def test_content_that_is_no_manifest_is_corrupt_data(tmp_path, content):
    write_checked(tmp_path / "manifest.json", content)
    with pytest.raises(CorruptData):
        read_manifest(tmp_path)


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
