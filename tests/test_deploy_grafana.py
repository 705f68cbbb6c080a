"""The board over plain JSON: every panel is asked as Grafana's Infinity data source asks, and finds its
columns in the answers of a collector and of `necroscope view`.
"""

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.drawn_fleet import drawn_fleet
from tests.integration.drawn_incident import drawn_incident, write
from tests.served_collector import served

from necroscope.cli.view import recording_of
from necroscope.fleet.collector.app import create_fleet_app
from necroscope.fleet.tokens import Grant, Tokens, digest_of
from necroscope.store.query import Store

BOARD = json.loads(
    (Path(__file__).parents[1] / "deploy/grafana/necroscope-incidents.json").read_text("utf-8")
)
TARGETS = {
    **{panel["title"]: panel["targets"][0] for panel in BOARD["panels"] if "targets" in panel},
    **{f"annotation {one['name']}": one["target"] for one in BOARD["annotations"]["list"]},
}
TOKEN = "a-token-of-sixteen-or-more"
NOW_NS = time.time_ns()
DAY_NS = 86_400 * 10**9


@contextlib.contextmanager
def served_node(directory: Path) -> Iterator[httpx.Client]:
    """`necroscope view` with a token that is known, as for Grafana."""
    write(directory / "recording", drawn_incident())
    token = directory / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    words = ["view", str(directory / "recording"), "--no-browser", "--token-file", str(token)]
    command = [sys.executable, "-c", "from necroscope.cli.main import run; run()", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert TOKEN not in line
        with httpx.Client(base_url=line.split()[-1], timeout=30) as client:
            yield client
        server.terminate()


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """By the variable of the board: a client, and the span of time that is shown."""
    place = tmp_path_factory.mktemp("grafana")
    tokens = Tokens({digest_of(TOKEN): Grant("*", "read")})
    lake = drawn_fleet(place / "lake", NOW_NS)
    with served(create_fleet_app(lake, tokens, recording_of)) as fleet, served_node(place) as node:
        recorded = Store.open(place / "recording").span()
        yield {"fleet": (fleet, (NOW_NS - 7 * DAY_NS, NOW_NS)), "node": (node, recorded)}


def filled_in(text: str, span: tuple[int, int]) -> str:
    """Grafana's variables, by its documentation: milliseconds, or ISO 8601 by `:date:iso`."""
    values = {one["name"]: one["query"] for one in BOARD["templating"]["list"]}
    for name, moment_ns in zip(("__from", "__to"), span, strict=True):
        iso = datetime.fromtimestamp(moment_ns / 10**9, UTC).isoformat(timespec="milliseconds")
        values[f"{name}:date:iso"] = iso.replace("+00:00", "Z")
        values[name] = str(moment_ns // 10**6)
    return re.sub(r"\$\{([^}]+)\}", lambda found: values[found[1]], text)


def chosen(value: Any, selector: str) -> Any:
    return reduce(
        lambda at, key: at.get(key) if isinstance(at, dict) else None, selector.split("."), value
    )


def ask(sources: dict[str, Any], target: dict[str, Any], token: str = TOKEN) -> httpx.Response:
    client, span = sources[target["datasource"]["uid"].strip("${}")]
    words = {one["key"]: filled_in(one["value"], span) for one in target["url_options"]["params"]}
    headers = {"Authorization": f"Bearer {token}"}
    answer: httpx.Response = client.get(target["url"].lstrip("/"), params=words, headers=headers)
    return answer


@pytest.mark.parametrize("title", TARGETS)
def test_every_panel_finds_its_rows_and_columns(sources: dict[str, Any], title: str) -> None:
    target = TARGETS[title]
    answer = ask(sources, target)
    assert answer.status_code == 200, answer.text
    rows = chosen(answer.json(), target["root_selector"])
    assert rows
    for column in target["columns"]:
        values = [chosen(each, column["selector"]) for each in rows]
        known = [value for value in values if value is not None]
        if column["selector"].startswith("softirq_delay"):
            continue  # absent where BPF could not measure it
        assert known, column
        if column["type"] == "timestamp":
            assert all(datetime.fromisoformat(value).tzinfo for value in known)
        elif column["type"] == "number":
            assert {type(value) for value in known} <= {int, float}


@pytest.mark.parametrize("title", ["Incidents", "Worst core"])
def test_without_the_token_a_dashboard_gets_nothing(sources: dict[str, Any], title: str) -> None:
    assert ask(sources, TARGETS[title], token="a-wrong-token-of-some-length").status_code == 401


def test_one_core_that_is_held_shows_on_the_panel(sources: dict[str, Any]) -> None:
    rows = ask(sources, TARGETS["Worst core"]).json()["rows"]
    held = max(rows, key=lambda one: one["system"])
    assert held["system"] > 0.9
    assert held["system_core"] in {0, 1}
