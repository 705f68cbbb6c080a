"""`necroscope check` on this machine, as a user or node-problem-detector runs it."""

import json
import subprocess
import sys

import pytest

CHECK = [sys.executable, "-m", "necroscope", "check"]


@pytest.mark.kernel
def test_the_exit_code_says_what_the_findings_say() -> None:
    done = subprocess.run([*CHECK, "--json"], capture_output=True, text=True, timeout=30)
    answer = json.loads(done.stdout)
    levels = {finding["level"] for finding in answer["findings"]}
    expected = 1 if "problem" in levels else 2 if "unknown" in levels else 0
    assert done.returncode == expected, done.stderr
    assert answer["status"] == ("well", "problem", "unknown")[expected]


@pytest.mark.kernel
def test_a_plugin_prints_one_short_line() -> None:
    done = subprocess.run([*CHECK, "--plugin"], capture_output=True, text=True, timeout=30)
    assert done.stdout.count("\n") == 1
    assert len(done.stdout) <= 81
    assert done.returncode in (0, 1, 2)
