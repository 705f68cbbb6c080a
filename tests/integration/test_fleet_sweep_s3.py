"""A sweep over an object store: the processes read the bundles themselves, over the real S3
protocol.
"""

from collections.abc import Iterator

import pytest
from tests.fleet_evidence import put_bundle, verdicts_in
from tests.object_store import lake_url, object_store

from necroscope.fleet.lake import Lake
from necroscope.fleet.sweep import sweep
from necroscope.fleet.sweep_processes import Processes


@pytest.fixture
def lake() -> Iterator[Lake]:
    with object_store() as address:
        yield Lake.open(lake_url(address, "lake"))


def test_verdicts_of_an_object_store_go_back_into_it(lake: Lake) -> None:
    for node in "abc":
        put_bundle(lake, node)
    put_bundle(lake, "d", content=b"no bundle")
    swept = sweep(lake, Processes(lake.url, 2))
    assert (swept.judged, swept.incidents, len(swept.broken), swept.unread) == (4, 3, 1, {})
    assert [row[1] for row in verdicts_in(lake)] == ["a", "b", "c"]
    assert sweep(lake, Processes(lake.url, 2)).known == 4
