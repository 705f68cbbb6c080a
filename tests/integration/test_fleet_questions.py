"""Questions as people ask them: of a lake in an object store, and of a collector that runs, by the
command line.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.collector_process import collector
from tests.fleet_lakes import CLUSTER, UNIT, draw_story
from tests.object_store import lake_url, object_store

from necroscope.fleet.tokens import Grant, entry_text

SPAN = ["--since", "2026-04-01", "--until", "2026-04-11"]
_FLEET = [
    sys.executable,
    "-c",
    "from necroscope.cli.fleet import command; command(prog_name='necroscope fleet')",
]
QUESTIONS = {
    "why": ["why", "--event", "nic_reset"],
    "nodes": ["nodes", "--where", "event=nic_reset"],
    "change": ["change", "--fact", "nic:eth0 state=was reset", "--event", "nic_reset"],
}


def ask(name: str, *source: str) -> dict[str, Any]:
    words = [*_FLEET, *QUESTIONS[name], *SPAN, *source, "--json"]
    answer: dict[str, Any] = json.loads(
        subprocess.run(words, check=True, capture_output=True, timeout=60).stdout
    )
    return answer


@pytest.fixture
def store() -> Iterator[str]:
    """The URL of a lake in an object store on loopback."""
    with object_store() as address:
        yield lake_url(address, "lake")


def test_a_lake_in_an_object_store_answers_as_a_directory_does(store: str, tmp_path: Path) -> None:
    for place in (store, tmp_path):
        draw_story(place).write()
    for name in ("why", "nodes"):
        assert ask(name, "--lake", store) == ask(name, "--lake", str(tmp_path))


def test_a_collector_answers_as_its_lake_does(tmp_path: Path) -> None:
    lake, tokens, token = str(tmp_path / "lake"), tmp_path / "tokens.toml", tmp_path / "token"
    draw_story(lake).write()
    token.write_text("necro_reader\n")
    tokens.write_text(entry_text("necro_reader", Grant(CLUSTER, "read")), "utf-8")
    with collector(lake, tokens) as running:
        source = ["--url", f"http://127.0.0.1:{running.port}", "--token-file", str(token)]
        answers = {name: ask(name, *source) for name in QUESTIONS}
    assert answers == {name: ask(name, "--lake", lake) for name in QUESTIONS}
    assert answers["why"]["leaders"][0]["name"] == f"unit_outcome {UNIT} is crash-loop"
