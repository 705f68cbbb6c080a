"""Days that are older than one wants to keep go, all but facts: those are written when they change,
and may still hold.
"""

import re
from datetime import date
from typing import Final

from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_tables import LAKE_TABLES

_KEPT: Final = frozenset({"facts"})
_DAY: Final = re.compile(r"/date=(\d{4}-\d\d-\d\d)/")


def remove_days_before(lake: Lake, first: date) -> int:
    """Remove rows and bundles of days (UTC, by the nodes' clocks) before `first`; answers how many
    files went.
    """
    paths = [
        path
        for table in LAKE_TABLES.keys() - _KEPT
        for day in lake.days(table)
        if day < first
        for path in lake.list(f"tables/{table}/date={day}")
    ]
    paths += [
        path
        for path in lake.list("bundles")
        if (day := _DAY.search(path)) and date.fromisoformat(day[1]) < first
    ]
    for path in paths:
        lake.delete(path)
    return len(paths)
