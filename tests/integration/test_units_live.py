"""A real systemd over its real bus: of this machine, or of a container whose root directory
NECROSCOPE_SYSTEMD_ROOT names.

Only asked, never told anything. Such a container: `systemd-nspawn -D ROOT -b --register=no
--keep-unit`, then /proc/PID/root.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from necroscope.errors import SourceUnavailable
from necroscope.model.reading import Moment, Reading
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.sources.facts import services
from necroscope.sources.systemd.bus import runs_systemd
from necroscope.sources.systemd.units import Units

ROOT = Path(os.environ.get("NECROSCOPE_SYSTEMD_ROOT", "/"))
COLUMNS = [column.name for column in TABLES["units"].columns]
pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(
        not runs_systemd(ROOT), reason="needs systemd: here, or by NECROSCOPE_SYSTEMD_ROOT"
    ),
]


def now() -> Moment:
    return Moment(time.time_ns(), time.monotonic_ns())


@pytest.fixture
def source() -> Iterator[Units]:
    offset_ns = time.time_ns() - time.monotonic_ns()
    units = Units(ROOT, NS_PER_S, lambda monotonic_ns: monotonic_ns + offset_ns)
    yield units
    units.close()


def look(source: Units) -> Reading:
    """The first reading with rows in it."""
    deadline = time.monotonic() + 60
    while not (reading := source.read(now())).rows:
        assert time.monotonic() < deadline, (
            reading.trouble
        )  # an emulated machine may need more than one try
        time.sleep(0.05)
    return reading


def rows(reading: Reading) -> dict[str, dict[str, Any]]:
    return {str(row[1]): dict(zip(COLUMNS, row, strict=True)) for row in reading.rows["units"]}


def test_its_services_and_timers_are_read(source: Units) -> None:
    found = rows(look(source))
    running = [
        row
        for row in found.values()
        if row["sub_state"] == "running" and row["unit"].endswith(".service")
    ]
    assert running
    assert all(
        row["main_pid"] and row["cgroup"] and row["fragment"]
        for row in running
        if row["result"] == "success"
    )
    assert all(
        row["started_ns"] is None or row["started_ns"] <= time.time_ns() for row in found.values()
    )
    assert {row["active_state"] for row in found.values()} <= {
        *("active", "inactive", "activating", "deactivating", "reloading", "failed", "maintenance")
    }


def test_a_crash_loop_is_an_event(source: Units) -> None:
    loops = [
        row["unit"] for row in rows(look(source)).values() if row["sub_state"] == "auto-restart"
    ]
    if not loops:
        pytest.skip("no unit of this systemd is in a crash loop")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        events = source.read(now()).rows.get("events", [])
        if any(
            row[1] == "unit_restart" and any(unit in str(row[11]) for unit in loops)
            for row in events
        ):
            return
        time.sleep(0.2)
    pytest.fail(f"no restart of {loops} was seen")


def collected(tries: int) -> list[Any]:
    while True:
        try:
            return list(services.collect(ROOT))
        except SourceUnavailable:  # in time on any machine but an emulated one
            tries -= 1
            if not tries:
                raise


def test_its_unit_files_are_facts() -> None:
    kinds = {fact.kind for fact in collected(tries=3)}
    assert {"unit_file", "unit_outcome", "systemd"} <= kinds
