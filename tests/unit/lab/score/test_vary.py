"""Thresholds are scaled one by one, and verdicts that change are counted on the right recordings."""

import json
from itertools import count
from pathlib import Path
from shutil import copytree

import pytest
from click.testing import CliRunner

from necroscope.cli.lab import command
from necroscope.lab.scenario import LabError
from necroscope.lab.score.vary import (
    LabelledRecording,
    ThresholdChange,
    parse_factors,
    truths,
    vary,
)

DATA = Path(__file__).parents[3] / "data"


def only(*names: str) -> list[LabelledRecording]:
    return [truth for truth in truths(DATA) if truth.directory.name in names]


def say_nothing(text: str) -> None:
    pass


def changed(name: str, factor: float) -> dict[tuple[str, str], ThresholdChange]:
    found = vary(only(name), [factor], say_nothing).changes
    return {(one.cause, one.threshold): one for one in found if one.matters}


def test_a_threshold_that_asks_for_too_much_loses_its_verdict_and_no_other() -> None:
    found = changed("proc-net-scan", 8.0)
    assert found["proc-net-scan", "confirmed"].lost == ["proc-net-scan"]
    assert {cause for cause, _ in found} == {"proc-net-scan"}


def test_a_threshold_that_asks_for_too_little_names_what_is_not_there() -> None:
    assert changed("rt-hog", 0.3)["userspace-hog", "long_s"].false_namings == ["rt-hog"]


def test_what_a_threshold_was_not_chosen_on_is_told_apart() -> None:
    chosen = {truth.directory.parent.name: truth.is_chosen_on for truth in truths(DATA)}
    assert chosen == {"lab": True, "guests": False}


def test_it_stops_when_time_is_up_and_says_what_was_left_out() -> None:
    ticks = count(step=400)
    found = vary(only("idle", "sort", "gzip"), [1.4], say_nothing, lambda: float(next(ticks)))
    assert (len(found.recordings), found.left_out) == (1, 2)


def test_a_range_is_both_ends_and_what_lies_between() -> None:
    assert parse_factors("0.7..1.4") == [0.7, 0.83, 1.18, 1.4]
    for text in ("0.7", "1.4..0.7", "0..2", "a..b"):
        with pytest.raises(LabError, match="is not a valid range"):
            parse_factors(text)


def test_the_command_prints_what_matters_and_where_thresholds_come_from(tmp_path: Path) -> None:
    for recording in (DATA / "guests").glob("6.*"):
        copytree(recording, tmp_path / recording.name)
    options = ["score", "--vary", "8..9", "--dir", str(tmp_path)]
    text = CliRunner().invoke(command, options).output
    assert "3 recordings: the thresholds were chosen on 0 of them, and not on 3." in text
    assert "irq-core-collision: mostly = 0.5" in text
    found = json.loads(CliRunner().invoke(command, [*options, "--json"]).stdout)
    assert {one["threshold"] for one in found["changes"] if one["lost"]} >= {"mostly"}
