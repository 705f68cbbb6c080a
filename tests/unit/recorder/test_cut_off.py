"""The next recorder says what was missed since the last one was cut off."""

import shutil
from pathlib import Path

from tests.unit.recorder.opened_disk import START_NS, open_disk, write

from necroscope.model.units import NS_PER_S
from necroscope.recorder.cut_off import missed_since_cut
from necroscope.segment.recording import segment_name

LATER_NS = START_NS + 100 * NS_PER_S


def recorded(directory: Path, seconds: int) -> Path:
    """Its journal, as a recorder that was killed leaves it."""
    directory.mkdir()
    disk = open_disk(directory)
    disk.start_segment(START_NS)
    for second in range(1, seconds + 1):
        write(disk, second)
    live = directory / f"{segment_name(START_NS)}.live"
    disk._seals.add = lambda journal: None
    disk.close()
    return live


def test_from_the_last_row_until_now_is_a_gap_after_a_cut(tmp_path: Path) -> None:
    recorded(tmp_path / "r", 7)
    (gap,) = missed_since_cut(tmp_path / "r", LATER_NS)
    assert (gap.table, gap.from_ns, gap.to_ns) == ("*", START_NS + 7 * NS_PER_S, LATER_NS)
    assert "killed, or the power was cut" in gap.cause


def test_a_torn_end_of_the_journal_moves_the_gap_to_the_last_whole_block(tmp_path: Path) -> None:
    journal = recorded(tmp_path / "r", 7) / "journal"
    journal.write_bytes(journal.read_bytes()[:-1])
    (gap,) = missed_since_cut(tmp_path / "r", LATER_NS)
    assert START_NS <= gap.from_ns < START_NS + 7 * NS_PER_S


def test_a_segment_without_its_journal_is_missed_from_its_start(tmp_path: Path) -> None:
    (recorded(tmp_path / "r", 7) / "journal").unlink()
    (gap,) = missed_since_cut(tmp_path / "r", LATER_NS)
    assert gap.from_ns == START_NS


def test_a_recorder_that_was_cut_off_before_its_first_flush_hides_nothing(tmp_path: Path) -> None:
    recorded(tmp_path / "r", 7)
    (tmp_path / "r" / f"{segment_name(START_NS + 50 * NS_PER_S)}.live").mkdir()
    (gap,) = missed_since_cut(tmp_path / "r", LATER_NS)
    assert gap.from_ns == START_NS + 7 * NS_PER_S


def test_a_recorder_that_ended_as_told_missed_nothing(tmp_path: Path) -> None:
    live = recorded(tmp_path / "r", 7)
    live.rename(live.with_suffix(""))
    assert missed_since_cut(tmp_path / "r", LATER_NS) == []


def test_a_clock_that_was_set_back_makes_no_gap(tmp_path: Path) -> None:
    recorded(tmp_path / "r", 7)
    assert missed_since_cut(tmp_path / "r", START_NS + 3 * NS_PER_S) == []


def test_an_empty_directory_missed_nothing(tmp_path: Path) -> None:
    shutil.rmtree(recorded(tmp_path / "r", 1))
    assert missed_since_cut(tmp_path / "r", LATER_NS) == []
