"""What goes when it is old, and what does not."""

from datetime import date
from pathlib import Path

from tests.fleet_batches import NS, START_NS, made_batch, put_in_inbox, rows_in

from necroscope.fleet.collector.upkeep import remove_days_before
from necroscope.fleet.compaction import Compactor
from necroscope.fleet.lake import Lake

DAY_MINUTES = 24 * 60
BUNDLES = [f"bundles/cluster=eu-1/date=2025-10-{day}/n--i.bundle" for day in ("09", "10")]


def test_old_days_go_and_facts_stay(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    put_in_inbox(
        lake,
        START_NS,
        "me",
        *(made_batch("n1", day * DAY_MINUTES, labels={"zone": "a"}) for day in range(3)),
    )
    Compactor(lake, "me", lambda: START_NS).compact()
    for path in BUNDLES:
        lake.put(path, b"")
    assert remove_days_before(lake, date(2025, 10, 10)) == 3, (
        "events and pulses of the first day, and its bundle"
    )
    assert [row["time"] for row in rows_in(lake)] == [
        START_NS + day * 86_400 * NS for day in (1, 2)
    ]
    assert len(rows_in(lake, "facts")) == 3
    assert lake.list("bundles") == BUNDLES[1:]
    assert remove_days_before(lake, date(2025, 10, 10)) == 0
