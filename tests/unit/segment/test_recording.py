"""The directory of a recording: names, states, pins, and what a crash leaves behind."""

import os
import stat
from pathlib import Path

import pytest

from necroscope.errors import CorruptData, RecordingError
from necroscope.segment.checksum import write_checked
from necroscope.segment.recording import (
    Identity,
    Pin,
    make_recording,
    new_segment_path,
    read_identity,
    read_pins,
    remove_leftovers,
    remove_segment,
    segment_bytes,
    segment_name,
    segment_paths,
    segment_start_ns,
    set_newer_aside,
    write_pins,
)

NAME = "2026-11-15T22-03-13.123Z"
IDENTITY = Identity("node", "boot", "test", {"k": "v"})


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


def test_names_tell_the_start_to_the_millisecond():
    start_ns = segment_start_ns(NAME)
    assert segment_name(start_ns) == NAME
    assert segment_name(start_ns + 999_999) == NAME
    assert segment_start_ns(NAME + ".live") == start_ns
    with pytest.raises(ValueError, match="not a valid name"):
        segment_start_ns("x")


def test_names_sort_as_times_do():
    moments = [10**18, 10**18 + 10**6, 10**18 + 10**9, 17 * 10**17]
    assert sorted(map(segment_name, moments)) == list(map(segment_name, moments))


def test_new_recording_is_private_and_says_who_made_it(tmp_path):
    directory = tmp_path / "a" / "b"
    make_recording(directory, IDENTITY)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert read_identity(directory) == IDENTITY


def test_old_recording_is_taken_up(recording):
    make_recording(recording, IDENTITY)
    assert read_identity(recording) == IDENTITY


def test_directory_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RecordingError, match="something other than a recording") as caught:
        make_recording(tmp_path, IDENTITY)
    assert caught.value.hint
    assert not (tmp_path / "recording.json").exists()


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_directory_that_everybody_may_write_to_is_refused(tmp_path, mode):
    tmp_path.chmod(mode)
    with pytest.raises(RecordingError, match="every user may write") as caught:
        make_recording(tmp_path, IDENTITY)
    assert "chmod o-w" in caught.value.hint
    assert list(tmp_path.iterdir()) == []
    tmp_path.chmod(0o775)  # as a umask of 002 makes them
    make_recording(tmp_path, IDENTITY)


def test_directory_of_somebody_else_is_refused_and_so_is_a_link_of_theirs(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("chown needs root")
    theirs, ours, link = tmp_path / "theirs", tmp_path / "ours", tmp_path / "link"
    theirs.mkdir(mode=0o700)
    ours.mkdir(mode=0o700)
    link.symlink_to(ours)
    make_recording(link, IDENTITY)
    os.chown(theirs, 65534, 65534)
    os.chown(link, 65534, 65534, follow_symlinks=False)
    for directory in (theirs, link):
        with pytest.raises(RecordingError, match="another user") as caught:
            make_recording(directory, IDENTITY)
        assert caught.value.hint
    assert list(theirs.iterdir()) == []


def test_place_that_cannot_be_made_is_an_error_with_a_hint(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordingError, match="is a file") as caught:
        make_recording(tmp_path / "file" / "x", IDENTITY)
    assert caught.value.hint


def test_directory_that_is_no_recording(tmp_path):
    with pytest.raises(RecordingError, match="not a recording") as caught:
        read_identity(tmp_path)
    assert "record" in caught.value.hint


def test_newer_recording_asks_for_an_upgrade(recording):
    write_checked(
        recording / "recording.json",
        {"schema": 99, "node": "n", "boot_id": "b", "made_by": "m", "labels": {}},
    )
    with pytest.raises(RecordingError, match="schema 99") as caught:
        read_identity(recording)
    assert "upgrade" in caught.value.hint
    with pytest.raises(RecordingError, match="schema 99"):
        make_recording(recording, IDENTITY)


def test_damaged_identity_is_corrupt_data(recording):
    write_checked(recording / "recording.json", {"schema": 1})
    with pytest.raises(CorruptData):
        read_identity(recording)


def test_name_taken_by_a_clock_stepped_back_moves_on(recording):
    start_ns = segment_start_ns(NAME)
    (recording / NAME).mkdir()
    (recording / "2026-11-15T22-03-13.124Z.live").mkdir()
    assert new_segment_path(recording, start_ns).name == "2026-11-15T22-03-13.125Z.live"


def test_sealed_wins_over_live_and_everything_else_is_ignored(recording):
    later = "2026-11-15T22-08-13.000Z"
    for name in (
        NAME,
        NAME + ".live",
        later + ".live",
        later + ".sealing",
        "2026-01-01T00-00-00.000Z.removing",
        "notes",
        "2026",
    ):
        (recording / name).mkdir()
    (recording / "2026-12-01T00-00-00.000Z").touch()
    assert names(segment_paths(recording)) == [NAME, later + ".live"]


def test_leftovers_of_a_crash_are_removed_and_unsealed_segments_named(recording):
    alone = "2026-11-15T22-08-13.000Z"
    for name in (
        NAME,
        NAME + ".live",
        alone + ".live",
        alone + ".sealing",
        "2026-01-01T00-00-00.000Z.removing",
    ):
        (recording / name).mkdir()
    (recording / "2025-01-01T00-00-00.000Z.sealing").mkdir()
    assert names(remove_leftovers(recording)) == [alone + ".live"]
    left = {path.name for path in recording.iterdir() if path.is_dir()}
    assert left == {NAME, alone + ".live", alone + ".sealing"}


def test_removed_segment_is_gone_even_if_an_earlier_removal_was_cut_short(recording):
    for name in (NAME, NAME + ".removing"):
        (recording / name).mkdir()
        (recording / name / "x.parquet").write_bytes(b"123")
    assert segment_bytes(recording / NAME) == 3
    remove_segment(recording / NAME)
    remove_segment(recording / NAME)
    assert segment_paths(recording) == []
    assert not (recording / (NAME + ".removing")).exists()
    assert segment_bytes(recording / NAME) == 0


def test_what_a_seal_left_unfinished_goes_with_its_journal(recording):
    for suffix in (".live", ".sealing"):
        (recording / (NAME + suffix)).mkdir()
    remove_segment(recording / (NAME + ".live"))
    assert [path for path in recording.iterdir() if path.is_dir()] == []


def test_pins_come_back(recording):
    assert read_pins(recording) == []
    write_pins(recording, [Pin(1, 2, "nic_reset"), Pin(3, 4, "ü")])
    assert read_pins(recording) == [Pin(1, 2, "nic_reset"), Pin(3, 4, "ü")]


def test_damaged_pins_are_corrupt_data_not_an_empty_list(recording):
    (recording / "pins.json").write_text("[]")
    with pytest.raises(CorruptData):
        read_pins(recording)


@pytest.mark.parametrize("moment", ["yesterday", 1.5, -1, 1 << 80, None])
def test_a_pin_of_another_hand_that_is_no_moment_is_corrupt_data(recording, moment):
    write_checked(recording / "pins.json", [{"from_ns": 1, "to_ns": moment, "reason": "x"}])
    with pytest.raises(CorruptData):
        read_pins(recording)


def test_names_of_another_hand_that_are_no_texts_are_corrupt_data(recording):
    write_checked(
        recording / "recording.json",
        {"schema": 1, "node": ["n"], "boot_id": 7, "made_by": None, "labels": {}},
    )
    with pytest.raises(CorruptData, match="node is not a text"):
        read_identity(recording)


def test_a_name_that_is_no_date_is_no_segment(recording):
    (recording / "2026-99-99T22-03-13.123Z").mkdir()
    assert segment_paths(recording) == []


def test_what_a_newer_version_recorded_is_set_aside_and_can_be_opened_there(
    recording: Path,
) -> None:
    identity = {"node": "n", "boot_id": "b", "made_by": "m", "labels": {}}
    (recording / "recorder.lock").touch()
    assert set_newer_aside(recording) is None
    write_checked(recording / "recording.json", {"schema": 99} | identity)
    aside = set_newer_aside(recording)
    assert aside is not None
    assert (aside / "recording.json").exists()
    make_recording(recording, Identity("node-7", "boot", "0"))
    assert read_identity(recording).node == "node-7"
    assert [path.name for path in recording.iterdir() if path.name == "recorder.lock"]
