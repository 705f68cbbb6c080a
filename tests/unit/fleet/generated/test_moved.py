"""A recording moved in time is the same recording."""

import pyarrow as pa
from tests.fleet_evidence import MINUTE_NS, RECORDING

from necroscope.fleet.generated.moved import MovedStore
from necroscope.model.tables import TABLES
from necroscope.store.query import Store

BY_NS = 1000 * MINUTE_NS
REAL = Store.open(RECORDING)
MOVED = MovedStore(RECORDING, BY_NS, "gpu-17")


def span() -> tuple[int, int]:
    info = REAL.info()
    assert info.from_ns is not None
    assert info.to_ns is not None
    return info.from_ns, info.to_ns + 1


def test_every_table_is_there_and_later() -> None:
    from_ns, to_ns = span()
    for name, table in TABLES.items():
        here, there = (
            REAL.rows(name, from_ns, to_ns),
            MOVED.rows(name, from_ns + BY_NS, to_ns + BY_NS),
        )
        assert len(here) == len(there), name
        if table.is_timed and len(here):
            assert there["time"][0].as_py() == here["time"][0].as_py() + BY_NS


def test_only_moments_differ() -> None:
    from_ns, to_ns = span()
    here, there = (
        REAL.rows("anchors", from_ns, to_ns),
        MOVED.rows("anchors", from_ns + BY_NS, to_ns + BY_NS),
    )
    differing = {name for name in here.column_names if not here[name].equals(there[name])}
    assert differing == {"time", "realtime_ns"}


def test_samples_gaps_pins_and_identity_are_moved_too() -> None:
    from_ns, to_ns = span()
    here, there = REAL.samples(from_ns, to_ns), MOVED.samples(from_ns + BY_NS, to_ns + BY_NS)
    assert there.stacks.equals(here.stacks)
    assert there.samples["time"][0].as_py() == here.samples["time"][0].as_py() + BY_NS
    assert [pin.from_ns for pin in MOVED.pins()] == [pin.from_ns + BY_NS for pin in REAL.pins()]
    info = MOVED.info()
    assert (info.node, info.from_ns) == ("gpu-17", from_ns + BY_NS)
    assert MOVED.catalog.identity is not None
    assert MOVED.catalog.identity.node == "gpu-17"


def test_events_can_be_added() -> None:
    from_ns, to_ns = span()
    event = {
        "time": from_ns + 5,
        "kind": "nic_reset",
        "severity": 3,
        "by_kernel": True,
        "message": "generated: reset",
    }
    with_it = MovedStore(RECORDING, BY_NS, "gpu-17", [event])
    rows = with_it.rows("events", from_ns + BY_NS, to_ns + BY_NS)
    assert rows["kind"].to_pylist()[0] == "nic_reset"
    assert len(rows) == len(REAL.rows("events", from_ns, to_ns)) + 1
    assert (
        "nic_reset"
        not in with_it.rows("events", from_ns + BY_NS + 6, to_ns + BY_NS)["kind"].to_pylist()
    )
    only = with_it.rows("events", from_ns + BY_NS, to_ns + BY_NS, columns=("kind",))
    assert only.column_names == ["kind"]
    assert isinstance(only, pa.Table)
