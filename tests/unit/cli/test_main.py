"""How the command ends when nobody reads what it says, and when the machine says no."""

import errno
import os
import subprocess
import sys

import pytest

from necroscope.cli import main

INTERRUPTED = """
from necroscope.cli import main

def interrupted(_):
    raise KeyboardInterrupt

main.necroscope.invoke = interrupted
main.main()
"""


def test_ctrl_c_is_reported_by_the_exit_code_though_nobody_reads_standard_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, "info"], stderr=writing, check=False)
    os.close(writing)
    assert done.returncode == 130


def test_what_is_closed_to_us_has_facts_a_way_out_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/var/lib/private/\x1b[31mx")

    monkeypatch.setattr(main.necroscope, "main", refused)
    with pytest.raises(SystemExit) as ended:
        main.main()
    said = capsys.readouterr().err
    assert ended.value.code == 3
    assert said.startswith("error: Permission denied: /var/lib/private/")
    assert "\nhint: " in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("typed", "meant"), [("diagnos", "diagnose"), ("recrod", "record"), ("flmae", "flame")]
)
def test_a_mistyped_command_is_answered_with_the_nearest_one(
    typed: str, meant: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["necroscope", typed])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == f"error: there is no command {typed!r}\nhint: did you mean: necroscope {meant}\n"


@pytest.mark.parametrize("words", [[], ["fleet"], ["lab"]])
def test_a_group_without_a_command_prints_its_help_and_no_error(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["necroscope", *words])
    main.main()
    printed = capsys.readouterr()
    assert printed.out.startswith("Usage: ")
    assert printed.err == ""
