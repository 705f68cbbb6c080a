"""docs/look-alikes.md: for every cause something that looks like it, and what holds that it is not
named.
"""

import re
from pathlib import Path

from necroscope.analysis.causes import all_causes
from necroscope.lab import catalog

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "look-alikes.md").read_text("utf-8")
ROWS = re.findall(r"^\| `([\w-]+)` \| (.+) \| (.+) \|$", PAGE, re.M)
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M)
}


def test_every_cause_has_something_that_looks_like_it() -> None:
    assert {slug for slug, _, _ in ROWS} == {one.slug for one in all_causes()} - {"unknown"}


def test_every_test_that_is_named_exists() -> None:
    assert set(re.findall(r"`(test_\w+)`", PAGE)) <= TESTS


def test_every_twin_that_is_named_is_harmless() -> None:
    twins = {name for _, _, held_by in ROWS for name in re.findall(r"lab `([\w-]+)`", held_by)}
    known = catalog.scenarios()
    assert {name for name in twins if name not in known or known[name].cause is not None} == set()
