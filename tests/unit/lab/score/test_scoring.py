"""A score from recordings that are there."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.drawn_recording import draw

from necroscope.cli.lab import command
from necroscope.errors import CorruptData
from necroscope.lab.catalog import find
from necroscope.lab.scenario import ImpactMissing
from necroscope.lab.score import scoring
from necroscope.lab.score.scoring import RunPlan, judge, provoke
from necroscope.lab.score.text import score_to_text

DRAWN = """
    comm:  loop  loop  loop
           main  main  main
           spin  spin  spin
"""


def recorded(directory: Path, scenario: str, cause: str | None, seed: int = 1) -> Path:
    label: dict[str, Any] = {
        "scenario": scenario,
        "core": 0,
        "mode": "user",
        "cause": cause,
        "culprit": None,
        "origin": None,
    }
    label |= {
        "impact": {},
        "from": "2025-10-09T08:53:20.000Z",
        "to": "2025-10-09T08:53:40.000Z",
        "seed": seed,
        "tolerates": [],
    }
    path = draw(directory / f"{scenario}-{seed}", DRAWN)
    (path / "label.json").write_text(json.dumps(label))
    return path


def said(cause: str) -> dict[str, Any]:
    verdict = {"cause": cause, "confidence": 0.9, "culprit": None, "origin": None}
    times = {"from": "2025-10-09T08:53:20.000Z", "to": "2025-10-09T08:53:30.000Z"}
    return {
        "incidents": [times | {"core": 0, "mode": "user", "verdict": verdict, "alternatives": []}]
    }


def test_a_score_reads_like_a_table(tmp_path: Path) -> None:
    paths = [recorded(tmp_path, "userspace-hog", "userspace-hog"), recorded(tmp_path, "idle", None)]
    scores, rows = judge(paths, lambda _: said("userspace-hog"), lambda _: None)
    text = score_to_text(scores, rows, [{"scenario": "rt-hog", "seed": 1, "why": "no impact"}])
    assert "right  userspace-hog  seed 1      said userspace-hog 0.90" in text
    assert "WRONG  idle           seed 1      said userspace-hog 0.90" in text
    assert "not scored: rt-hog seed 1: no impact" in text
    assert [name for name in scores if name in text] == list(scores)
    assert scores["necroscope"].false_namings.hits == 1


def test_a_recording_that_cannot_be_diagnosed_has_no_verdict(tmp_path: Path) -> None:
    messages: list[str] = []

    def fail(_: Path) -> dict[str, Any]:
        raise CorruptData("all is broken")

    scores, rows = judge(
        [recorded(tmp_path, "userspace-hog", "userspace-hog")], fail, messages.append
    )
    assert scores["necroscope"].coverage.hits == 0
    assert (rows[0]["is_right"], messages) == (
        False,
        ["no verdict on userspace-hog-1: all is broken"],
    )


def test_what_is_there_is_kept_and_a_run_without_a_label_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path, "idle", None)
    unfinished = draw(tmp_path / "idle-2", DRAWN)
    ran: list[Path] = []

    def run(_scenario: object, request: Any, _say: object) -> None:
        assert not request.directory.exists()
        ran.append(request.directory)
        raise ImpactMissing("it was not idle")

    monkeypatch.setattr(scoring, "run", run)
    plan = RunPlan(tmp_path, [find("idle")], seeds=2, is_reusing=True)
    assert provoke(plan, lambda _: None) == [
        {"scenario": "idle", "seed": 2, "why": "it was not idle"}
    ]
    assert ran == [unfinished]


def test_the_command_scores_what_is_there_without_root(tmp_path: Path) -> None:
    recorded(tmp_path, "userspace-hog", "userspace-hog")
    done = CliRunner().invoke(command, ["score", "--dir", str(tmp_path), "--no-run", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [run["scenario"] for run in found["runs"]] == ["userspace-hog"]
    assert found["scores"]["necroscope"]["levels"]["cause"]["ac1"]["of"] == 1
