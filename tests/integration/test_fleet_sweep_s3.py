"""A sweep over an object store: the processes read the bundles themselves, over the real S3
protocol.
"""

from collections.abc import Iterator
from urllib.parse import quote

import boto3
import pytest
from moto.server import ThreadedMotoServer
from tests.fleet_evidence import put_bundle, verdicts_in

from necroscope.fleet.lake import Lake
from necroscope.fleet.sweep import sweep
from necroscope.fleet.sweep_processes import Processes

BUCKET = "fleet"


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    client = boto3.client("s3", endpoint_url=address, region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET)
    client.close()
    yield Lake.open(
        f"s3://{BUCKET}/lake?region=us-east-1&scheme=http&endpoint_override={quote(address, safe='')}"
    )
    server.stop()


def test_verdicts_of_an_object_store_go_back_into_it(lake: Lake) -> None:
    for node in "abc":
        put_bundle(lake, node)
    put_bundle(lake, "d", content=b"no bundle")
    swept = sweep(lake, Processes(lake.url, 2))
    assert (swept.judged, swept.incidents, len(swept.broken), swept.unread) == (4, 3, 1, {})
    assert [row[1] for row in verdicts_in(lake)] == ["a", "b", "c"]
    assert sweep(lake, Processes(lake.url, 2)).known == 4
