"""docs/security.md is a promise: each row of the threat model names tests, and they are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text("utf-8")
ROWS = [
    line.strip("|").split(" | ")
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| who |", "| finding |", "| --- "))
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row[:2]).strip()[:60])
def test_a_row_names_tests_that_exist(row: list[str]) -> None:
    named = [words.split()[0] for words in re.findall(r"`([^`]+)`", row[-1])]
    places = [ROOT / name for name in named if "/" in name]
    assert places
    assert [place for place in places if not place.exists()] == []


def test_both_tables_are_read() -> None:
    assert len(ROWS) > 40
