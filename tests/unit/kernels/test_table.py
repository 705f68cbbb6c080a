"""The table of features in docs/kernels.md: it says what table.py says, and no cell contradicts the
release beside it.
"""

import json
from pathlib import Path

import pytest
from tests.kernels import table
from tests.kernels.image import ROOT
from tests.kernels.sets.features import PROBES
from tests.kernels.table import FEATURES, Feature

# Tried inside, and nothing that the recorder reads.
UNUSED = {"softnet: queue lengths", "memory.reclaim"}


def documented() -> list[list[str]]:
    """Heading and rows, each as its cells."""
    lines = (
        (ROOT / "docs/kernels.md")
        .read_text()
        .partition("## What each gives")[2]
        .partition("\n## ")[0]
        .splitlines()
    )
    heading, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]
    return [heading, *rows]


def release(text: str) -> tuple[int, ...]:
    """A kernel may be followed by its architecture."""
    number = text.removeprefix("to ").partition(" ")[0]
    return tuple(int(part) for part in number.split("."))


def test_the_docs_have_these_rows_with_these_releases_and_fallbacks() -> None:
    expected = [(feature.name, feature.since, feature.otherwise) for feature in FEATURES]
    assert [(row[0], row[1], row[-1]) for row in documented()[1:]] == expected


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_what_was_run_does_not_contradict_what_was_read(feature: Feature) -> None:
    heading, *rows = documented()
    cells = next(row for row in rows if row[0] == feature.name)
    for kernel, cell in list(zip(heading, cells, strict=True))[2:-1]:
        is_older = release(kernel) < release(feature.since)
        if is_older or not feature.is_optional:
            assert (cell == "○") == (is_older and not feature.since.startswith("to ")), kernel


def test_every_probe_is_reported_in_a_row() -> None:
    assert {probe for feature in FEATURES for probe in feature.probes} == PROBES.keys() - UNUSED


def test_a_row_tells_what_the_guests_answered(tmp_path: Path) -> None:
    for name, kernel, answer in (
        ("5.10", "5.10.0-46-amd64", False),
        ("newest", "7.2.13-amd64", True),
        ("6.1-arm64", "6.1.0-56-arm64", True),
    ):
        place = tmp_path / f"{name}-v2/features"
        place.mkdir(parents=True)
        (place / "features.json").write_text(
            json.dumps({"release": kernel, "features": dict.fromkeys(PROBES, answer)})
        )
    heading, _, stacks, ksymbol, *_ = table.features(tmp_path).splitlines()
    assert heading == "| feature | since | 5.10 | 7.2 | 6.1 arm64 | else |"
    assert stacks.split(" | ")[2:5] == ["?", "?", "?"]
    assert ksymbol.split(" | ")[1:5] == ["5.1", "○", "●", "●"]
