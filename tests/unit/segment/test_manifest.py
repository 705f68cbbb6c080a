"""A manifest comes back as it was written, or not at all."""

import pytest

from necroscope.errors import CorruptData, RecordingError
from necroscope.model.reading import Gap
from necroscope.segment.checksum import write_checked
from necroscope.segment.manifest import Manifest, TableEntry, read_manifest


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
