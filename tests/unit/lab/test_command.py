"""`necroscope lab` as a user types it."""

import json
from pathlib import Path

from click.testing import CliRunner

from necroscope.cli.lab import command
from necroscope.lab.catalog import scenarios


def test_the_list_has_every_scenario_with_its_title() -> None:
    done = CliRunner().invoke(command, ["list"])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(scenarios())
    assert "One thread that never yields, pinned to one core." in done.stdout


def test_the_list_as_json_tells_the_stories() -> None:
    found = {
        each["name"]: each
        for each in json.loads(CliRunner().invoke(command, ["list", "--json"]).stdout)
    }
    assert found["userspace-hog"]["cause"] == "userspace-hog"
    assert found["idle"]["cause"] is None
    assert "Seen in the wild" in found["idle"]["story"]


def test_nothing_to_score_is_an_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["score", "--dir", str(tmp_path), "--no-run"])
    assert "nothing to score" in str(done.exception)
