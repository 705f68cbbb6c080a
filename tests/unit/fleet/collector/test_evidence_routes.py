"""The evidence of an incident in the time machine: who may look, what is no evidence, and how much
is kept open.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.integration.drawn_incident import drawn_incident, write
from tests.served_collector import served

from necroscope.cli.view import recording_of
from necroscope.fleet.bundle import pack
from necroscope.fleet.collector.app import create_app
from necroscope.fleet.collector.evidence_routes import evidence_router
from necroscope.fleet.lake import Lake
from necroscope.fleet.tokens import Grant, Tokens, digest_of

GRANTS = {
    "push": Grant("eu-1", "push"),
    "read": Grant("eu-1", "read"),
    "read-us": Grant("us-1", "read"),
}
DAY = "2025-10-09"


def place(bundle: str, cluster: str = "eu-1") -> str:
    return f"/evidence/{cluster}/{DAY}/{bundle}/"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return pack(write(tmp_path_factory.mktemp("evidence") / "r", drawn_incident()))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


@pytest.fixture
def client(tmp_path: Path, bundle: bytes, temporary: Path) -> Iterator[httpx.Client]:
    lake = Lake.open(str(tmp_path / "lake"))
    for number in range(4):
        lake.put(f"bundles/cluster=eu-1/date={DAY}/gpu-17--{number}.bundle", bundle)
    lake.put(f"bundles/cluster=eu-1/date={DAY}/gpu-17--torn.bundle", bundle[: len(bundle) // 2])
    tokens = Tokens({digest_of(token): grant for token, grant in GRANTS.items()})
    with served(
        create_app(lake, tokens, routers=[evidence_router(recording_of, most_open=2)])
    ) as client:
        client.headers["Authorization"] = "Bearer read"
        yield client


def test_the_time_machine_answers_from_the_bundle(client: httpx.Client) -> None:
    recording = client.get(place("gpu-17--0.bundle") + "api/recording").json()
    assert recording["node"] == "drawn-node"
    report = client.get(place("gpu-17--0.bundle") + "api/report").json()
    assert [incident["core"] for incident in report["incidents"]] == [1]
    window = {"from_ns": recording["from"], "to_ns": recording["to"]}
    assert client.get(place("gpu-17--0.bundle") + "api/flame", params=window).content[4:5] == b"{"
    assert client.get(place("gpu-17--0.bundle") + "api/flame").status_code == 422


def test_only_a_reader_of_its_cluster_sees_it(client: httpx.Client) -> None:
    asked = place("gpu-17--0.bundle") + "api/recording"
    assert client.get(asked, headers={"Authorization": ""}).status_code == 401
    assert client.get(asked, headers={"Authorization": "Bearer push"}).status_code == 403
    assert client.get(asked, headers={"Authorization": "Bearer read-us"}).status_code == 403


@pytest.mark.parametrize(
    "address",
    [
        place("gpu-17--9.bundle"),
        place("gpu-17--0.bundle", "us-1"),
        place("gpu-17--0.parquet"),
        place("%2e%2e"),
        "/evidence/eu-1/2025-02-31/gpu-17--0.bundle/",
        "/evidence/eu-1/0001-01-01/gpu-17--0.bundle/",
        f"/evidence/..%2f..%2ftables/{DAY}/gpu-17--0.bundle/",
    ],
)
def test_what_is_no_evidence_is_not_found(client: httpx.Client, address: str) -> None:
    assert client.get(address + "api/recording").status_code in (403, 404)
    assert client.get(
        address + "api/recording", headers={"Authorization": "Bearer read-us"}
    ).status_code in (403, 404)


def test_torn_evidence_is_said_to_be_torn_and_leaves_nothing(
    client: httpx.Client, temporary: Path
) -> None:
    answer = client.get(place("gpu-17--torn.bundle") + "api/recording")
    assert answer.status_code == 422
    assert "not a bundle" in answer.json()["error"]
    assert not list(temporary.iterdir())


def test_evidence_whose_window_began_before_midnight_lies_under_the_day_before(
    client: httpx.Client,
) -> None:
    assert client.get("/evidence/eu-1/2025-10-10/gpu-17--0.bundle/api/recording").status_code == 200
    assert client.get("/evidence/eu-1/2025-10-11/gpu-17--0.bundle/api/recording").status_code == 404


def test_a_few_are_kept_unpacked_and_the_oldest_goes(client: httpx.Client, temporary: Path) -> None:
    for number in (0, 1, 0, 2, 3, 0):
        assert client.get(place(f"gpu-17--{number}.bundle") + "api/recording").status_code == 200
        assert len(list(temporary.iterdir())) <= 2


def test_an_address_without_its_slash_leads_to_the_page(client: httpx.Client) -> None:
    answer = client.get(place("gpu-17--0.bundle").rstrip("/"))
    assert answer.status_code == 308
    assert httpx.URL(f"http://x{place('gpu-17--0.bundle').rstrip('/')}").join(
        answer.headers["location"]
    ).path == place("gpu-17--0.bundle")
