"""docs/public-incidents.md says only what a test or a kept recording shows."""

import re
from collections import Counter
from pathlib import Path

import pytest

from necroscope.analysis.causes import all_causes

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "public-incidents.md").read_text("utf-8")
ROWS = {
    int(cells[0]): cells
    for line in PAGE.splitlines()
    if re.match(r"\| \d+ \|", line)
    for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
}
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M)
}


def test_all_incidents_are_there() -> None:
    assert sorted(ROWS) == list(range(1, 43))


@pytest.mark.parametrize("number", sorted(ROWS))
def test_a_row_points_to_what_shows_it(number: int) -> None:
    _, _, _, verdict, cause, shown_by = ROWS[number]
    assert verdict in ("named", "described", "not seen")
    tests = re.findall(r"`(test_\w+)`", shown_by)
    recordings = re.findall(r"lab `([\w-]+)`", shown_by)
    assert (verdict == "not seen") == (not tests and not recordings)
    assert set(tests) <= TESTS
    assert [name for name in recordings if not (ROOT / "tests/data/lab" / name).is_dir()] == []
    slugs = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", cause))
    assert slugs <= {one.slug for one in all_causes()}
    assert slugs or verdict != "named"


def test_the_numbers_are_counted() -> None:
    counted = Counter(cells[3] for cells in ROWS.values())
    said = {
        verdict: int(count)
        for verdict, count in re.findall(
            r"\| (named|described|not seen|wrong) \|.*\| (\d+) \|", PAGE
        )
    }
    assert said == {"wrong": 0, **counted}
