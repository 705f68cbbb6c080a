"""The questions of `necroscope fleet` at the command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.fleet_lakes import draw_story

from necroscope.cli import (
    fleet_baseline,
    fleet_change,
    fleet_diff,
    fleet_flame,
    fleet_incidents,
    fleet_next,
    fleet_nodes,
    fleet_why,
)
from necroscope.errors import NecroscopeError, UsageError

SPAN = ["--since", "2026-04-01", "--until", "2026-04-11"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("lake")
    draw_story(path).write()
    return path


def ran(command: Any, *words: str) -> Result:
    return CliRunner().invoke(command, list(words))


def test_each_question_answers_as_text_and_as_json(lake: Path) -> None:
    for command, words, key in (
        (fleet_why.command, ["--event", "nic_reset"], "leaders"),
        (fleet_diff.command, ["zone=a", "zone=b"], "differences"),
        (fleet_nodes.command, [], "nodes"),
        (fleet_next.command, ["--event", "nic_reset"], "carriers"),
        (fleet_baseline.command, [], "unasked"),
        (fleet_incidents.command, [], "incidents"),
        (
            fleet_change.command,
            ["--fact", "nic:eth0 state=was reset", "--event", "nic_reset"],
            "changed",
        ),
    ):
        asked = [*words, *SPAN, "--lake", str(lake)]
        assert ran(command, *asked).exit_code == 0
        assert key in json.loads(ran(command, *asked, "--json").stdout)


def test_a_flame_graph_is_written_by_its_suffix(lake: Path, tmp_path: Path) -> None:
    for suffix, mark in (
        (".svg", "<svg"),
        (".html", "<!doctype html>"),
        (".folded", "kubelet;entry"),
    ):
        file = tmp_path / f"flame{suffix}"
        assert ran(fleet_flame.command, *SPAN, "--lake", str(lake), "-o", str(file)).exit_code == 0
        assert mark in file.read_text().lower()
    assert isinstance(
        ran(fleet_flame.command, "--lake", str(lake), "-o", "flame.exe").exception, UsageError
    )


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ([], "either a lake or a collector"),
        (["--lake", "L", "--url", "http://x"], "either a lake or a collector"),
        (["--url", "http://x"], "needs a token"),
        (["--lake", "/nonexistent/lake"], "is empty"),
        (["--lake", "ftp://x"], ""),
    ],
)
def test_bad_words_are_reported_and_never_a_traceback(words: list[str], facts: str) -> None:
    error = ran(fleet_nodes.command, *words).exception
    assert isinstance(error, NecroscopeError)
    assert facts in error.facts


def test_help_of_the_questions_loads_no_database() -> None:
    code = (
        "import sys; from necroscope.cli import fleet_why; sys.exit('duckdb' in sys.modules or"
        " 'pyarrow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
