"""`fleet sweep`: what it says, what it keeps, and how it fails."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.fleet_evidence import put_bundle

from necroscope.cli import fleet_sweep
from necroscope.cli.fleet_sweep import command
from necroscope.errors import NecroscopeError
from necroscope.fleet.judging import read_and_judge, without_rows
from necroscope.fleet.lake import Lake
from necroscope.fleet.sweep import Judges


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Swept in this process, to be quick."""
    lake = Lake.open(str(tmp_path / "lake"))

    def here(_: str, __: int | None) -> Judges:
        return lambda evidence, now_ns: (read_and_judge(lake, one, now_ns) for one in evidence)

    monkeypatch.setattr(fleet_sweep, "Processes", here)
    return lake


def run(*words: str) -> str:
    result = CliRunner().invoke(command, list(words), catch_exceptions=False, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return click.unstyle(result.stdout)


def test_it_says_in_words_what_came_of_it(lake: Lake) -> None:
    put_bundle(lake, "a")
    put_bundle(lake, "b", content=b"no bundle")
    said = run("--lake", lake.url)
    assert "2 bundles, of which 0 were judged before" in said
    assert "1  zombie-memcg-walk" in said
    assert "1 are broken and were skipped" in said
    assert "2 were judged before" in run("--lake", lake.url)


def test_json_tells_the_same(lake: Lake) -> None:
    put_bundle(lake, "a")
    answer = json.loads(run("--lake", lake.url, "--json"))
    assert (answer["bundles"], answer["judged"], answer["causes"]) == (
        1,
        1,
        {"zombie-memcg-walk": 1},
    )
    assert json.loads(run("--lake", lake.url, "--json"))["judged"] == 0
    assert json.loads(run("--lake", lake.url, "--json", "--again"))["judged"] == 1


def test_days_and_clusters_choose(lake: Lake) -> None:
    put_bundle(lake, "a")
    put_bundle(lake, "b", cluster="us-1")
    assert json.loads(run("--lake", lake.url, "--json", "--cluster", "us-1"))["bundles"] == 1
    assert json.loads(run("--lake", lake.url, "--json", "--since", "2027-01-01"))["bundles"] == 0


def test_what_was_not_judged_is_an_error_with_the_way_out(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_bundle(lake, "a")

    def away(_: str, __: int | None) -> Judges:
        return lambda evidence, _: (
            without_rows(one, unread="the lake was away") for one in evidence
        )

    monkeypatch.setattr(fleet_sweep, "Processes", away)
    with pytest.raises(NecroscopeError, match="1 of 1 bundles were not judged"):
        run("--lake", lake.url)


def test_a_lake_without_evidence_is_no_error(lake: Lake) -> None:
    assert "no evidence" in run("--lake", lake.url)
