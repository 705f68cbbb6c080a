"""The catalog knows the segments, opens few of them, and follows a recording that changes under
it.
"""

import os
import shutil
import time

import pytest
from tests.closed_directory import closed

from necroscope.errors import PermissionMissing, RecordingError
from necroscope.segment import reader as reader_module
from necroscope.segment.recording import remove_segment
from necroscope.segment.seal_writer import seal
from necroscope.store.catalog import Catalog

START_NS = 1_760_000_000_000_000_000
NS = 1_000_000_000


@pytest.fixture
def opened(monkeypatch):
    """Names of the sealed segments whose manifest was opened."""
    names = []
    true_class = reader_module.SealedSegment
    monkeypatch.setattr(
        reader_module,
        "SealedSegment",
        lambda path, kept: (names.append(path.name), true_class(path, kept))[1],
    )
    return names


def test_segments_are_listed_by_start_with_their_spans(write):
    segments = Catalog(write(3, live=1)).segments
    assert [segment.is_live for segment in segments] == [False, False, True]
    assert [segment.from_ns for segment in segments] == [START_NS + i * 10 * NS for i in range(3)]
    assert [segment.to_ns for segment in segments] == [
        START_NS + (i * 10 + 9) * NS + 1 for i in range(3)
    ]


def test_sealed_segments_are_not_opened_to_be_listed(write, opened):
    catalog = Catalog(write(4))
    assert len(catalog.segments) == 4
    assert opened == []
    (segment,) = catalog.within((START_NS + 12 * NS, START_NS + 13 * NS))
    catalog.reader(segment)
    catalog.reader(segment)
    assert opened == [segment.path.name]


@pytest.mark.parametrize("damage", ["absent", "junk"])
def test_without_the_cache_of_spans_the_manifests_tell(write, opened, damage):
    directory = write(3)
    right = Catalog(directory).segments
    (directory / "spans.json").unlink()
    if damage == "junk":
        (directory / "spans.json").write_bytes(b"\xff")
    assert Catalog(directory).segments == right
    assert len(opened) == 3


def test_anything_else_in_the_directory_is_ignored(write):
    directory = write(1)
    (directory / "label.json").write_text("{}")
    (directory / "2026-11-15T22-03-13.123Z").write_text("a file with a segment's name")
    (directory / "2026-11-15T22-03-13.124Z.sealing").mkdir()
    (directory / "2026-11-15T22-03-13.125Z.removing").mkdir()
    (directory / "caf\udce9").mkdir()
    assert len(Catalog(directory).segments) == 1


def test_refresh_sees_what_came_was_sealed_and_went(write):
    directory = write(3, live=2)
    catalog = Catalog(directory)
    paths = [segment.path for segment in catalog.segments]
    seal(paths[1])
    catalog.refresh()
    assert [segment.is_live for segment in catalog.segments] == [False, False, True]
    remove_segment(paths[0])
    catalog.refresh()
    assert len(catalog.segments) == 2
    shutil.rmtree(paths[2])
    catalog.refresh()
    assert len(catalog.segments) == 1


def test_refresh_of_an_unchanged_directory_lists_nothing(write, monkeypatch):
    directory = write(3)
    os.utime(directory, ns=(START_NS, START_NS))
    catalog = Catalog(directory)
    monkeypatch.setattr(
        "necroscope.store.catalog.segment_paths", lambda _: pytest.fail("listed again")
    )
    catalog.refresh()
    assert len(catalog.segments) == 3


def test_empty_recording_has_no_segments(write):
    assert Catalog(write(0)).segments == []


@pytest.mark.parametrize("kind", ["absent", "file", "empty"])
def test_what_is_no_recording_is_an_error_with_a_hint(tmp_path, kind):
    path = tmp_path / "x"
    if kind == "file":
        path.touch()
    elif kind == "empty":
        path.mkdir()
    with pytest.raises(RecordingError) as caught:
        Catalog(path)
    assert str(path) in caught.value.facts
    assert "record" in caught.value.hint


@pytest.mark.parametrize("place", ["private/recording", "private"])
def test_a_recording_that_only_its_owner_may_open_is_an_error_with_a_hint(tmp_path, place):
    (tmp_path / "private/recording").mkdir(parents=True)
    with closed(tmp_path / "private"), pytest.raises(PermissionMissing) as caught:
        Catalog(tmp_path / place)
    assert str(tmp_path / place) in caught.value.facts
    assert "root" in caught.value.hint


def test_damaged_identity_does_not_hide_the_segments(write):
    directory = write(1)
    (directory / "recording.json").write_text("{}")
    catalog = Catalog(directory)
    assert len(catalog.segments) == 1
    assert catalog.identity is None
    assert "recording.json" in catalog.damage


def test_change_within_one_tick_of_the_file_clock_is_not_missed(write):
    directory = write(2)
    hidden = directory.parent / "hidden"
    first = min(directory.glob("20*"))
    first.rename(hidden)
    now_ns = time.time_ns()
    os.utime(directory, ns=(now_ns, now_ns))
    catalog = Catalog(directory)
    assert len(catalog.segments) == 1
    hidden.rename(first)
    os.utime(directory, ns=(now_ns, now_ns))
    catalog.refresh()
    assert len(catalog.segments) == 2


def test_while_it_is_held_a_catalog_stays_as_it_is(write):
    directory = write(2)
    catalog = Catalog(directory)
    with catalog.held():
        remove_segment(catalog.segments[0].path)
        catalog.refresh()
        assert len(catalog.segments) == 2
    catalog.refresh()
    assert len(catalog.segments) == 1
