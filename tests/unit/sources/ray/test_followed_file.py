"""A log that is followed: from where we were, whole lines, bounded."""

import os
import re
from pathlib import Path

from necroscope.sources.ray import session_logs
from necroscope.sources.ray.session_logs import BEHIND_LIMIT_BYTES, FollowedFile

TELLING = re.compile(rb"dead")


def follow(path: Path, *, from_end: bool = False) -> FollowedFile:
    return FollowedFile(os.open(path, os.O_RDONLY), TELLING, path.stat().st_size if from_end else 0)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_only_lines_that_came_since_and_tell_something(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a is dead\n")
    file = follow(path, from_end=True)
    assert file.read_lines() == []
    append(path, b"b lives\nc is dead, dead\n\nd is dead\n")
    assert file.read_lines() == [b"c is dead, dead", b"d is dead"]
    assert file.read_lines() == []
    file.close()


def test_a_line_in_two_pieces_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"e is de")
    file = follow(path)
    assert file.read_lines() == []
    append(path, b"ad\nf")
    assert file.read_lines() == [b"e is dead"]
    file.close()


def test_a_piece_that_tells_nothing_is_not_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"alive\n" * 4 + b"h is dead\n")
    file = follow(path)
    assert (file.read_lines(24), file.is_at_end) == ([], False)
    assert (file.read_lines(24), file.is_at_end) == ([b"h is dead"], True)
    file.close()


def test_a_file_that_was_cut_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 100 + b"\n")
    file = follow(path)
    file.read_lines()
    path.write_bytes(b"g is dead\n")
    assert file.read_lines() == [b"g is dead"]
    file.close()


def test_a_file_far_ahead_is_not_caught_up_with_and_that_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"early dead\n")
    with path.open("r+b") as file_:
        file_.truncate(BEHIND_LIMIT_BYTES + 1_000_000)
    append(path, b"\nlate dead\n")
    file = follow(path)
    assert [line[-9:] for line in file.read_lines()] == [b"late dead"]
    assert file.take_skipped_bytes() > 4_000_000
    assert file.take_skipped_bytes() == 0
    file.close()


def test_a_line_without_end_takes_no_more_memory_than_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 300_000)
    file = follow(path)
    for _ in range(5):
        file.read_lines()
        append(path, b"y" * 100_000)
    assert len(file._pending) <= session_logs._LINE_LIMIT_BYTES
    file.close()
