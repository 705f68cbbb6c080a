"""What a recording shows of the boot before: how far it reaches, and whether it was cut off."""

from pathlib import Path

from tests.written_recording import WrittenSegment, at, new_recording

from necroscope.segment.last_boot import read_earlier_boot


def test_a_journal_that_was_left_is_of_a_boot_that_was_cut(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r", "old")
    WrittenSegment(recording, 0, boot_id="older").ticks(0, 5).seal()
    WrittenSegment(recording, 10, boot_id="old").ticks(10, 14).leave()
    earlier = read_earlier_boot(recording, "new")
    assert earlier is not None
    assert (earlier.boot_id, earlier.recorded_to_ns, earlier.is_cut) == ("old", at(14), True)


def test_a_recording_that_was_ended_is_not_cut(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r", "old")
    WrittenSegment(recording, 0, boot_id="old").ticks(0, 5).seal()
    earlier = read_earlier_boot(recording, "new")
    assert earlier is not None
    assert not earlier.is_cut


def test_a_restart_within_the_boot_has_no_earlier_one(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r", "now")
    WrittenSegment(recording, 0, boot_id="now").ticks(0, 5).leave()
    assert read_earlier_boot(recording, "now") is None
    assert read_earlier_boot(new_recording(tmp_path / "empty", "now"), "now") is None


def test_a_damaged_journal_is_not_a_boot(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r", "old")
    segment = WrittenSegment(recording, 0, boot_id="old").ticks(0, 5).leave()
    for file in segment.path.iterdir():
        file.write_bytes(b"\xff" * 100)
    assert read_earlier_boot(recording, "new") is None
