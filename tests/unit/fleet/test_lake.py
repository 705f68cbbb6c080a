"""A lake on a directory: durable, whole, and only the partitions that can hold the answer."""

import errno
import os
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from tests.fleet_batches import NS, START_NS

from necroscope.errors import UsageError
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import LakeError, NotInLake
from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.fleet.table_files import write_rows

DAY_NS = 86_400 * NS


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"))


def pulse(cluster: str, day: int) -> dict[str, object]:
    time_ns = START_NS + day * DAY_NS
    return {
        "cluster": cluster,
        "node": "n",
        "time": time_ns,
        "span_from": time_ns,
        "span_to": time_ns,
    }


def fill(lake: Lake) -> None:
    rows = [pulse(cluster, day) for cluster in ("eu", "us") for day in range(4)]
    write_rows(
        lake, "pulses", pa.Table.from_pylist(rows, schema=LAKE_TABLES["pulses"]), "w", START_NS
    )


def test_files_are_put_listed_read_and_deleted(lake: Lake) -> None:
    assert lake.list("inbox") == []
    lake.put("inbox/b", b"2")
    lake.put("inbox/a", b"1")
    lake.put("other/c", b"3")
    assert lake.list("inbox") == ["inbox/a", "inbox/b"]
    assert lake.read("inbox/b") == b"2"
    lake.delete("inbox/b")
    lake.delete("inbox/b")
    assert lake.list("inbox") == ["inbox/a"]
    with pytest.raises(NotInLake):
        lake.read("inbox/b")


def test_a_put_is_synced_before_it_has_its_name(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put("inbox/first", b"")
    steps = []
    fsync, replace = os.fsync, Path.replace

    def watched_fsync(number: int) -> None:
        steps.append("directory" if os.path.isdir(f"/proc/self/fd/{number}") else "file")
        fsync(number)

    def watched_replace(source: Path, target: Path) -> Path:
        steps.append("name")
        return replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    lake.put("inbox/second", b"x")
    assert steps == ["file", "name", "directory"]


def test_a_put_that_fails_leaves_nothing(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LakeError, match="No space left on device") as caught:
        lake.put("inbox/a", b"x")
    assert caught.value.hint
    assert not [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]


def test_unfinished_puts_are_not_listed_and_go_when_they_are_old(
    lake: Lake, tmp_path: Path
) -> None:
    lake.put("inbox/a", b"x")
    left = tmp_path / "lake" / "inbox" / ".b.0123.tmp"
    left.write_bytes(b"half")
    assert lake.list("inbox") == ["inbox/a"]
    lake.remove_leftovers()
    assert left.exists()
    os.utime(left, (0, 0))
    lake.remove_leftovers()
    assert not left.exists()
    assert lake.list("inbox") == ["inbox/a"]


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "inbox/../../x", "inbox//x", "inbox/./x", "a\\b", "a\0b"]
)
def test_no_path_leads_out_of_the_lake(lake: Lake, path: str) -> None:
    for verb in (lake.read, lake.delete, lake.list, lambda name: lake.put(name, b"")):
        with pytest.raises(UsageError):
            verb(path)


@pytest.mark.parametrize("url", ["ftp://host/x", "s3://", "gs:///x"])
def test_another_url_is_no_lake(url: str) -> None:
    with pytest.raises(UsageError, match="is not a lake"):
        Lake.open(url)


def test_only_days_and_clusters_that_can_hold_it_are_read(lake: Lake) -> None:
    fill(lake)
    assert lake.dataset("pulses").count_rows() == 8
    assert lake.dataset("pulses", clusters=["us"]).count_rows() == 4
    assert lake.dataset("pulses", from_ns=START_NS + 2 * DAY_NS).count_rows() == 4
    assert lake.dataset("pulses", to_ns=START_NS + DAY_NS, clusters=["eu", "us"]).count_rows() == 4
    midnight_ns = START_NS - START_NS % DAY_NS
    assert len(lake.table_files("pulses", midnight_ns, midnight_ns + DAY_NS, ["eu"])) == 1
    assert lake.days("pulses") == [
        date(2025, 10, 9),
        date(2025, 10, 10),
        date(2025, 10, 11),
        date(2025, 10, 12),
    ]


def test_a_table_without_rows_is_an_empty_dataset(lake: Lake) -> None:
    assert lake.dataset("jobs").to_table().schema.equals(LAKE_TABLES["jobs"])
    assert lake.dataset("jobs", 0, 1).count_rows() == 0
    with pytest.raises(UsageError):
        lake.dataset("dreams")


def test_columns_that_an_older_collector_did_not_write_are_null(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake)
    newer = LAKE_TABLES["pulses"].append(pa.field("mood", pa.string()))
    monkeypatch.setitem(LAKE_TABLES, "pulses", newer)
    assert lake.dataset("pulses").to_table()["mood"].null_count == 8


def test_the_space_of_a_lake_that_is_not_there_yet_is_its_disk_s(lake: Lake) -> None:
    space = lake.space_bytes()
    assert space is not None
    assert 0 < space[0] <= space[1]


def test_an_object_store_takes_no_other_options() -> None:
    with pytest.raises(UsageError, match="no option 'secret_key'"):
        Lake.open("s3://bucket/prefix?region=us-east-1&secret_key=x")


@pytest.mark.parametrize("url", ["s3://bucket/prefix?region=us-east-1", "gs://bucket/prefix"])
def test_opening_an_object_store_asks_nobody(url: str) -> None:
    assert Lake.open(url).space_bytes() is None
