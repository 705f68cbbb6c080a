"""The generated fleet as people meet it: the answer, what a real collector tells the page, and a
clean end.
"""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from necroscope.cli import demo_fleet
from necroscope.cli.demo import command
from necroscope.errors import NecroscopeError, UsageError


def test_the_demo_answers_serves_and_leaves_nothing_behind() -> None:
    words = [sys.executable, "-m", "necroscope", "demo", "--fleet", "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        said = ""
        while "the fleet is at" not in said:
            line = demo.stdout.readline()
            assert line, demo.communicate()[1]
            said += line
        address, token = re.findall(r"the fleet is at (\S+)/#token=(\S+)", said)[0]
        request = urllib.request.Request(
            f"{address}/v1/why?event=nic_reset", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            why = json.load(answer)
        (lake,) = set(re.findall(r"--lake (\S+)", said))
        demo.send_signal(signal.SIGTERM)
        _, errors = demo.communicate(timeout=30)
    assert demo.returncode == 0, errors
    assert "This fleet is generated" in said
    assert "unit_outcome metrics-d.service is crash-loop goes with nic_reset" in " ".join(
        said.split()
    )
    assert why["outcome"] == "separated"
    assert (why["nodes"], why["leaders"][0]["name"]) == (
        500,
        "unit_outcome metrics-d.service is crash-loop",
    )
    assert not Path(lake).exists()


def test_two_demos_at_once_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot be combined"):
        command.main(["--live", "--fleet"], standalone_mode=False)


def test_a_question_that_is_not_answered_fails_the_demo(tmp_path: Path) -> None:
    with pytest.raises(NecroscopeError, match="the question to the fleet failed"):
        demo_fleet._ask(tmp_path, "why", "--event", "nic_reset")


def test_a_collector_that_does_not_come_up_is_reported_with_its_reason_and_its_hint(
    tmp_path: Path,
) -> None:
    collector = demo_fleet._collector(tmp_path / "lake", tmp_path / "no tokens", 0)
    with (
        pytest.raises(NecroscopeError, match="did not start: cannot read tokens") as caught,
        collector,
    ):
        pass
    assert "fleet token new" in caught.value.hint
