"""The label has the shape that `lab run --json` promises, and reads back."""

import json
from pathlib import Path

import pytest

from necroscope.errors import CorruptData, RecordingError
from necroscope.lab.catalog import find
from necroscope.lab.label import LABEL_FILE, label_of, read_label
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Truth

MOMENT = 1_760_000_000_000_000_000


def test_a_label_says_what_happened() -> None:
    truth = Truth(
        {"user_share": 0.9},
        1,
        "user",
        KnownCulprit("loop", 7, also=("loop-thread",)),
        KnownOrigin("process", "loop"),
    )
    label = label_of(
        find("userspace-hog")(), truth, (MOMENT, MOMENT + 5_000_000_000), 3, ["kernel log lines"]
    )
    assert list(label)[:9] == [
        "scenario",
        "core",
        "mode",
        "cause",
        "culprit",
        "origin",
        "impact",
        "from",
        "to",
    ]
    assert (label["from"], label["to"]) == ("2025-10-09T08:53:20.000Z", "2025-10-09T08:53:25.000Z")
    assert label["culprit"] == {"comm": "loop", "pid": 7, "cgroup": None, "also": ["loop-thread"]}
    assert (label["cause"], label["seed"], label["emulated"]) == (
        "userspace-hog",
        3,
        ["kernel log lines"],
    )


def test_a_label_reads_back(tmp_path: Path) -> None:
    label = label_of(find("idle")(), Truth({}), (MOMENT, MOMENT), 1, [])
    (tmp_path / LABEL_FILE).write_text(json.dumps(label))
    assert read_label(tmp_path) == label
    assert label["culprit"] is None


def test_no_label_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"no label\.json"):
        read_label(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"scenario": "x"}'])
def test_a_damaged_label_is_said_so(tmp_path: Path, content: str) -> None:
    (tmp_path / LABEL_FILE).write_text(content)
    with pytest.raises(CorruptData):
        read_label(tmp_path)
