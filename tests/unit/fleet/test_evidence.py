"""Which bundles are in a lake, and which of them were judged before."""

from datetime import date
from pathlib import Path

import pytest

from necroscope.fleet.evidence import StoredBundle, evidence_in, mark_judged, read_judged
from necroscope.fleet.lake import Lake

NS = 1_000_000_000


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"))


def put(
    lake: Lake,
    node: str,
    day: str = "2026-11-16",
    name: str = "2026-11-16T03-59-01.958Z",
    cluster: str = "eu",
) -> StoredBundle:
    path = f"bundles/cluster={cluster}/date={day}/{node}--{name}.bundle"
    lake.put(path, b"a bundle")
    evidence = StoredBundle.of(path)
    assert evidence is not None
    return evidence


def test_a_path_tells_cluster_node_day_and_id() -> None:
    found = StoredBundle.of(
        "bundles/cluster=eu-1/date=2026-11-16/gpu--17--2026-11-16T03-59-01.958Z.bundle"
    )
    assert found is not None
    assert (found.cluster, found.node, found.id) == ("eu-1", "gpu--17", "2026-11-16T03-59-01.958Z")
    assert found.day == date(2026, 11, 16)


@pytest.mark.parametrize(
    "path",
    ["bundles/readme", "tables/a/date=2026-11-16/b--c.bundle", "bundles/cluster=a/b--c.bundle"],
)
def test_what_is_no_bundle_is_passed_over(lake: Lake, path: str) -> None:
    lake.put(path, b"?")
    assert StoredBundle.of(path) is None
    assert evidence_in(lake) == []


def test_the_newest_come_first(lake: Lake) -> None:
    put(lake, "a", "2026-11-14", "2026-11-14T01-00-00.000Z")
    put(lake, "b", "2026-11-16", "2026-11-16T01-00-00.000Z")
    put(lake, "c", "2026-11-16", "2026-11-16T02-00-00.000Z")
    assert [one.node for one in evidence_in(lake)] == ["c", "b", "a"]


def test_days_and_clusters_choose(lake: Lake) -> None:
    put(lake, "a", "2026-11-14")
    put(lake, "b", "2026-11-16")
    put(lake, "c", "2026-11-16", cluster="us-1")
    from_ns = 1_794_787_200 * NS  # 2026-11-16
    assert [one.node for one in evidence_in(lake, from_ns, ["eu"])] == ["b"]


def test_what_was_noted_is_known_to_that_version_only(lake: Lake) -> None:
    one, other = put(lake, "a"), put(lake, "b")
    mark_judged(lake, "1.0", [one], "writer", 1)
    mark_judged(lake, "2.0", [other], "writer", 2)
    assert read_judged(lake, "1.0") == {one.key}


def test_a_note_that_is_damaged_costs_time_only(lake: Lake) -> None:
    one = put(lake, "a")
    mark_judged(lake, "1.0", [one], "writer", 1)
    for number, content in enumerate([b"\xff", b"[]", b'{"judged": [1]}', b'{"judged": ["x"]}']):
        lake.put(f"swept/1.0/{number}.json", content)
    assert read_judged(lake, "1.0") == {one.key}
