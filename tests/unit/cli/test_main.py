"""How the command ends when nobody reads what it says."""

import os
import subprocess
import sys

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
