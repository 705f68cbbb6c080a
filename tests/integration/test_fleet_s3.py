"""A lake in an object store, over the real S3 protocol: moto's server on loopback, reached through
pyarrow.
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collector_process import collector
from tests.fleet_batches import START_NS, made_batch, put_in_inbox, rows_in, sequences_in
from tests.object_store import lake_url, object_store

from necroscope.fleet.compaction import ABANDONED_NS, Compactor
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import LakeError, NotInLake
from necroscope.fleet.merging import TOGETHER, Merger

DAY_NS = 86_400 * 10**9


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """The address of an object store with our bucket."""
    with object_store() as address:
        yield address


@pytest.fixture
def url(store: str, tmp_path: Path) -> str:
    return lake_url(store, tmp_path.name)


def test_objects_are_put_listed_read_and_deleted(url: str) -> None:
    lake = Lake.open(url)
    assert lake.list("inbox") == []
    lake.put("inbox/b", b"2" * 100_000)
    lake.put("inbox/a", b"")
    lake.put("tables/events/date=2026-01-02/cluster=x/1-w-0.parquet", b"3")
    assert lake.list("inbox") == ["inbox/a", "inbox/b"]
    assert lake.read("inbox/b") == b"2" * 100_000
    assert [str(day) for day in lake.days("events")] == ["2026-01-02"]
    lake.delete("inbox/b")
    lake.delete("inbox/b")
    assert lake.list("inbox") == ["inbox/a"]
    with pytest.raises(NotInLake):
        lake.read("inbox/b")
    assert lake.space_bytes() is None


def test_batches_become_rows_and_small_objects_become_one(url: str) -> None:
    lake = Lake.open(url)
    moments = iter(range(START_NS, START_NS + 10**6))
    compactor = Compactor(lake, "me", lambda: next(moments))
    for number in range(TOGETHER):
        put_in_inbox(
            lake, START_NS + number, "me", made_batch("n1", number), made_batch("n2", number)
        )
        compactor.compact()
    merger = Merger(lake, "me", lambda: next(moments))
    assert merger.merge() == 2 * TOGETHER
    merger.remove_retired(at_once=True)
    assert len(lake.table_files("events")) == 1
    assert len(sequences_in(lake)) == len(rows_in(lake, "pulses")) == 2 * TOGETHER
    assert lake.dataset("events", START_NS + DAY_NS, None).count_rows() == 0
    assert (
        lake.dataset("events", START_NS, START_NS + DAY_NS, ["eu-1"]).count_rows() == 2 * TOGETHER
    )


def test_two_collectors_work_on_one_store_and_one_may_be_killed(url: str, tmp_path: Path) -> None:
    lake, tokens = Lake.open(url), tmp_path / "tokens.toml"
    quick = ("--commit-every", "20ms", "--compact-every", "100ms")
    with collector(url, tokens, *quick) as first, collector(url, tokens, *quick) as second:
        for number in range(10):
            assert first.push("n1", number) == 200
            assert second.push("n1", number) == 200
        first.kill()
        assert second.push("n1", 10) == 200
        assert second.terminate() == 0
    Compactor(lake, "later", lambda: time.time_ns() + 2 * ABANDONED_NS).compact()
    assert sequences_in(lake) == [("n1", number) for number in range(11)]


def test_a_bucket_that_is_not_there_is_an_error_with_facts(url: str) -> None:
    lake = Lake.open(url.replace("s3://fleet/", "s3://nobodys/"))
    with pytest.raises(LakeError, match="refuses"):
        lake.put("inbox/a", b"x")


def test_a_store_that_is_away_is_an_error_within_its_time_limit(tmp_path: Path, store: str) -> None:
    lake = Lake.open(lake_url("http://127.0.0.1:1", "x"))
    began_s = time.monotonic()
    with pytest.raises(LakeError) as caught, contextlib.suppress(NotInLake):
        lake.put("inbox/a", b"x")
    assert caught.value.hint
    assert time.monotonic() - began_s < 30
