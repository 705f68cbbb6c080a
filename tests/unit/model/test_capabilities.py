"""Capabilities are given up for good; what is kept can be handed on."""

import subprocess
import sys

import pytest

PROGRAM = """
from necroscope.model import capabilities as c
before = c.held()
c.keep(before & {c.DAC_READ_SEARCH, c.SYS_PTRACE, c.CHECKPOINT_RESTORE})
print(sorted(before & {2, 19, 40} ^ c.held()))
try:
    c._set([1 << c.SYS_ADMIN] * 3)
    print("back")
except PermissionError:
    print("gone")
"""


@pytest.mark.root
def test_what_is_not_kept_cannot_be_had_again() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, check=True
    )
    assert ended.stdout == "[]\ngone\n"


def test_a_process_without_any_gives_none_up() -> None:
    code = (
        "from necroscope.model import capabilities as c; c.keep(()); c.hand_on(); print(c.held())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    assert ended.stdout == "frozenset()\n"
