"""Old recordings are read through one upgrader per step; newer ones ask for a newer necroscope."""

from pathlib import Path

import pyarrow as pa
import pytest

from necroscope.errors import RecordingError
from necroscope.model.tables import SCHEMA_VERSION, TABLES, Column, Type
from necroscope.segment import reader, versions
from necroscope.segment.seal_writer import seal
from necroscope.segment.versions import check_version
from necroscope.store.query import Store

EVER = (-(1 << 63), (1 << 63) - 1)
FORMATS = Path(__file__).parents[2] / "data" / "formats"


def test_every_version_has_its_layout_and_each_step_its_upgrader():
    assert set(versions.LAYOUTS) == set(range(1, SCHEMA_VERSION + 1))
    assert set(versions.UPGRADERS) == set(range(1, SCHEMA_VERSION))


@pytest.mark.parametrize("version", [0, 2, 99])
def test_unknown_version_asks_for_an_upgrade(version):
    with pytest.raises(RecordingError, match=f"schema {version}") as caught:
        check_version(version)
    assert "upgrade" in caught.value.hint


@pytest.mark.parametrize("is_sealed", [True, False])
def test_old_rows_pass_through_the_upgrader(record, monkeypatch, is_sealed):
    path = seal(record()) if is_sealed else record()
    newer = {
        **TABLES,
        "cores": TABLES["cores"]._replace(
            columns=(*TABLES["cores"].columns, Column("mhz", Type.INT32, "new"))
        ),
    }

    def add_clock(name: str, rows: pa.Table) -> pa.Table:
        return (
            rows.append_column("mhz", pa.nulls(rows.num_rows, pa.int32()))
            if name == "cores"
            else rows
        )

    monkeypatch.setitem(versions.LAYOUTS, 2, newer)
    monkeypatch.setitem(versions.UPGRADERS, 1, add_clock)
    monkeypatch.setattr(reader, "TABLES", newer)
    monkeypatch.setattr(reader, "SCHEMA_VERSION", 2)
    old = reader.SegmentReader(path)
    assert old.read("cores", *EVER, ["mhz", "cpu"]).to_pylist() == [
        {"mhz": None, "cpu": cpu} for _ in range(4) for cpu in (0, 1)
    ]
    assert old.read("samples", *EVER).num_rows == 32
    assert old.read("pressure", *EVER).num_rows == 0


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_recording_kept_from_each_version_is_read(version):
    store = Store.open(FORMATS / f"v{version}")
    info = store.info()
    assert (info.node, info.labels, info.segments, info.cpus) == ("node-a", {"zone": "a"}, 3, 2)
    assert (info.lost_samples, info.idle_samples, len(info.pins)) == (9, 30, 1)
    # Tables that came later are empty in it, which needs no upgrader.
    came_later = {"units", "containers", "facts", "core_minutes", "waits", "run_delay", "sampling"}
    came_later |= {"network", "populations", "job_members", "job_progress", "late_beats"}
    assert set(TABLES) - set(info.tables) <= came_later
    assert store.rows("waits", *EVER).num_rows == 0
    assert store.rows("units", *EVER).num_rows == 0
    assert [gap.cause for gap in info.gaps] == ["ring overran"] * 3
    assert set(store.rows("log", *EVER).column("message").to_pylist()) == {
        f"line {n} é" for n in range(3)
    }
    window = store.samples(*EVER)
    assert window.samples.column("stack").to_pylist() == [1] * 12
    assert window.stacks.to_pylist() == [
        {"stack": 0, "parent": -1, "frame": 0},
        {"stack": 1, "parent": 0, "frame": 1},
    ]
    assert window.frames.column("function").to_pylist() == ["start", None]
    assert all(
        gap.cause == "ring overran"
        for segment in store.catalog.segments
        for gap in store.catalog.reader(segment).verify()
    )
