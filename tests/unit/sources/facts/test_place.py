"""Facts about image, cloud and configuration."""

import json
from pathlib import Path

import pytest
from tests.fake_daemon import http, never, tcp_daemon
from tests.synthetic_root import write_files

from necroscope.errors import SourceUnavailable
from necroscope.sources.facts import place
from necroscope.sources.facts.place import collect_metadata, parse_instance_data

INSTANCE = {
    "v1": {
        "cloud_name": "aws",
        "availability_zone": "us-east-1a",
        "region": "us-east-1",
        "instance_id": "i-1",
    },
    "ds": {
        "meta_data": {
            "instance-type": "p4d.24xlarge",
            "ami-id": "ami-1",
            "security-credentials": {"role": "secret"},
        }
    },
    "userdata": "password: secret",
}
DOCUMENT = {
    "availabilityZone": "us-east-1a",
    "instanceType": "p4d.24xlarge",
    "accountId": "123456789012",
    "imageId": "ami-1",
}


def test_image_cloud_and_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NECROSCOPE_LABEL_RACK", "r7")
    monkeypatch.setenv("NODE_NAME", "node-1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    write_files(
        tmp_path,
        {
            "etc/os-release": 'ID=ubuntu\nVERSION_ID="22.04"\nHOME_URL="x"\n',
            "run/cloud-init/instance-data.json": json.dumps(INSTANCE),
            "etc/docker/daemon.json": '{"secret": 1}',
        },
    )
    found = {(kind, name): value for kind, name, value in place.collect(tmp_path)}
    assert (found["os", "id"], found["os", "version_id"]) == ("ubuntu", "22.04")
    assert (found["cloud", "availability_zone"], found["cloud", "instance_type"]) == (
        "us-east-1a",
        "p4d.24xlarge",
    )
    assert (found["label", "rack"], found["environment", "NODE_NAME"]) == ("r7", "node-1")
    assert len(found["config_file", "/etc/docker/daemon.json"]) == 64
    assert "secret" not in " ".join(found.values())


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"null", b'{"v1": 5}', b'{"ds": {"meta_data": []}}', b"[" * 100_000]
)
def test_damaged_instance_data_says_nothing(data: bytes) -> None:
    assert list(parse_instance_data(data)) == []


def test_the_metadata_service_is_asked_with_a_token() -> None:
    answers = {"/latest/api/token": b"dG9rZW4=", "/latest/dynamic/": json.dumps(DOCUMENT).encode()}
    with tcp_daemon(http(answers)) as service:
        found = {name: value for _, name, value in collect_metadata("127.0.0.1", service.port)}
        assert found == {
            "availability_zone": "us-east-1a",
            "instance_type": "p4d.24xlarge",
            "image_id": "ami-1",
        }
        assert service.heard[0].startswith(b"PUT /latest/api/token")
        assert b"X-aws-ec2-metadata-token: dG9rZW4=\r\n" in service.heard[1]


@pytest.mark.parametrize("token", [403, b"bad\r\ntoken", b""])
def test_without_a_token_nothing_is_asked(token: bytes | int) -> None:
    with tcp_daemon(http({"/latest/api/token": token})) as service:
        with pytest.raises(SourceUnavailable, match="no token"):
            list(collect_metadata("127.0.0.1", service.port))
        assert len(service.heard) == 1


def test_a_metadata_service_that_hangs_costs_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_METADATA_SECONDS", 0.1)
    with (
        tcp_daemon(never) as service,
        pytest.raises(SourceUnavailable, match="did not answer in time"),
    ):
        list(collect_metadata("127.0.0.1", service.port))
