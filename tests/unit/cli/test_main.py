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


def test_ctrl_c_is_told_by_the_exit_code_though_nobody_reads_standard_error() -> None:
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
