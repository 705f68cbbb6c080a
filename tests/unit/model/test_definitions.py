"""Words in numbers: one place says what they mean, and how late a table may tell of something."""

from pathlib import Path

import pytest

from necroscope.model import definitions
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.sources.cgroupfs.cgroups import Cgroups
from necroscope.sources.procfs.interrupts import Interrupts
from necroscope.sources.sysfs.nics import Nics


@pytest.mark.parametrize("source", [Cgroups, Interrupts, Nics])
def test_a_source_is_read_as_often_as_its_table_says(
    source: type[Cgroups] | type[Interrupts] | type[Nics],
) -> None:
    assert {TABLES[table].period_s for table in source.tables} == {source.period_s}


def test_a_table_that_is_read_seldom_tells_late() -> None:
    assert definitions.late_ns(TABLES["interrupts"]) == 11 * NS_PER_S
    assert definitions.late_ns(TABLES["cores"]) < NS_PER_S


def test_a_word_is_defined_once() -> None:
    words = {name for name in vars(definitions) if name.isupper() and not name.startswith("NS_")}
    package = Path(definitions.__file__).parents[1]
    again = [
        f"{path.relative_to(package)}: {line}"
        for path in package.rglob("*.py")
        if path.name != "definitions.py"
        for line in path.read_text("utf-8").splitlines()
        if line.partition(":")[0].lstrip("_") in words
    ]
    assert again == []
