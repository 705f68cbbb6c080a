"""The last lines of a unit's own log, from a `journalctl` that a test writes."""

from pathlib import Path

import pytest

from necroscope.sources.systemd.own_log import read_last_lines


@pytest.fixture
def journalctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "journalctl"


def write(program: Path, text: str) -> None:
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


def test_the_last_lines_come_cleaned_and_no_more_than_asked(journalctl: Path) -> None:
    write(journalctl, "printf 'first\\n\\nsecond\\n\\033[2Jthird\\n'")
    assert read_last_lines(Path("/"), "a.service", 2) == ("second", "\\x1b[2Jthird")


def test_a_megabyte_of_one_line_is_cut(journalctl: Path) -> None:
    write(journalctl, "head -c 2000000 /dev/zero | tr '\\0' x")
    (line,) = read_last_lines(Path("/"), "a.service", 5)
    assert len(line) == 300


@pytest.mark.parametrize("text", ["exit 1", "echo hidden; exit 3"])
def test_a_journal_that_does_not_answer_says_nothing(journalctl: Path, text: str) -> None:
    write(journalctl, text)
    assert read_last_lines(Path("/"), "a.service", 5) == ()


def test_a_hostile_unit_name_is_one_argument_of_a_match(journalctl: Path) -> None:
    write(journalctl, 'for last; do :; done; echo "$last"')
    assert read_last_lines(Path("/"), "--vacuum-size=1 ;x", 5) == (
        "_SYSTEMD_UNIT=--vacuum-size=1 ;x",
    )
