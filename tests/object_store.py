"""An object store over the real S3 protocol: moto's server on loopback."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import boto3
import pytest
from moto.server import ThreadedMotoServer

_BUCKET = "fleet"
_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def object_store() -> Iterator[str]:
    """Its address; it has our bucket, and this process and its children may write there."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in _CREDENTIALS.items():
            environment.setenv(name, value)
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        address = "http://{}:{}".format(*server.get_host_and_port())
        client = boto3.client("s3", endpoint_url=address, region_name="us-east-1")
        client.create_bucket(Bucket=_BUCKET)
        client.close()
        yield address
        server.stop()


def lake_url(address: str, name: str) -> str:
    endpoint = quote(address, safe="")
    return f"s3://{_BUCKET}/{name}?region=us-east-1&scheme=http&endpoint_override={endpoint}"
