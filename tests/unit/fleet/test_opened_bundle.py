"""Bundles of strangers: what they claim is looked at before it is read."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.drawn_recording import draw
from tests.unit.fleet.test_bundle import PICTURE

from necroscope.errors import CorruptData
from necroscope.fleet import opened_bundle
from necroscope.fleet.bundle import pack
from necroscope.fleet.opened_bundle import open_bundle
from necroscope.segment.manifest import read_manifest
from necroscope.store.query import Store


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return draw(tmp_path / "r", PICTURE, until=5)


@pytest.fixture
def segment(recording: Path) -> Path:
    return Store.open(recording).catalog.segments[0].path


@pytest.mark.parametrize(
    ("bound", "most", "facts"),
    [
        ("_MOST_VALUES", 4, "values"),
        ("_MOST_BYTES", 100, "bytes"),
        ("_MOST_TEXT_BYTES", 10, "texts"),
    ],
)
def test_a_bundle_is_opened_by_what_its_tables_say(
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
    most: int,
    facts: str,
) -> None:
    content = pack(recording)
    assert open_bundle(content, tmp_path / "fits").info().tables["samples"] == 5
    monkeypatch.setattr(opened_bundle, bound, most)
    with pytest.raises(CorruptData, match=facts):
        open_bundle(content, tmp_path / "bundle")


def test_one_text_a_million_times_is_no_small_file(
    recording: Path, segment: Path, tmp_path: Path
) -> None:
    message = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), ["x" * 20_000])
    pq.write_table(pa.table({"message": message}), segment / "events.parquet", compression="zstd")
    content = pack(recording)
    assert len(content) < 1 << 20
    with pytest.raises(CorruptData, match="texts of 2,000,0"):
        open_bundle(content, tmp_path / "bundle")


def test_lists_and_pages_that_cannot_be_read_are_no_table(
    recording: Path, segment: Path, tmp_path: Path
) -> None:
    path = segment / "events.parquet"
    pq.write_table(pa.table({"message": [["x"] * 1000]}), path)
    with pytest.raises(CorruptData, match="lists"):
        open_bundle(pack(recording), tmp_path / "lists")
    pq.write_table(pa.table({"message": ["x"] * 1000}), path)
    path.write_bytes(b"PAR1" + bytes(60) + path.read_bytes()[64:])
    with pytest.raises(CorruptData, match="cannot be read"):
        open_bundle(pack(recording), tmp_path / "damaged")


def test_a_bundle_of_a_hundred_years_is_refused(
    recording: Path, segment: Path, tmp_path: Path
) -> None:
    read_manifest(segment)._replace(to_ns=1 << 62).write(segment)
    with pytest.raises(CorruptData, match="says that it is of"):
        open_bundle(pack(recording), tmp_path / "bundle")
