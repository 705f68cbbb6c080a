"""What a collector gets of a recording, and what happens while it takes nothing."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
from tests.ledger_entries import ledger_entry
from tests.receiving_server import Received, ReceivingServer, Reply, receiving_server

from necroscope.fleet.request import Endpoint
from necroscope.model.units import NS_PER_S
from necroscope.outlets.otlp.exporter import LOGS_PATH, PROFILES_PATH, OtlpExporter
from necroscope.store.query import Store
from necroscope.verdicts.ledger import LEDGER_FILE, line

LAB = Path(__file__).parents[3] / "data" / "lab" / "irq-core-collision"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return shutil.copytree(LAB, tmp_path / "recording")


def exporter(
    recording: Path, server: ReceivingServer, said: list[str], **options: bool
) -> tuple[OtlpExporter, int]:
    """From the beginning of a recording, and its end."""
    store = Store.open(recording)
    first_ns, last_ns = store.span()
    endpoint = Endpoint.parse(f"{server.url}/otel/")
    return OtlpExporter(
        store, endpoint, lambda: {"Authorization": "Bearer x"}, first_ns, said.append, **options
    ), last_ns + 1


def bodies(server: ReceivingServer, path: str) -> list[bytes]:
    return [each.body for each in server.received if each.path == f"/otel{path}"]


def refuse(path: str) -> Reply | None:
    return (503, {}, b"") if path.endswith("profiles") else None


def test_every_sample_is_sent_once_with_the_headers(recording: Path) -> None:
    with receiving_server() as server:
        sender, end_ns = exporter(recording, server, [])
        assert sender.turn(end_ns)
        assert sender.turn(end_ns)
        parts = [ProfilesData.FromString(body) for body in bodies(server, PROFILES_PATH)]
    profiles = [part.resource_profiles[0].scope_profiles[0].profiles[0] for part in parts]
    assert sum(len(s.timestamps_unix_nano) for each in profiles for s in each.samples) == 1675
    assert {each.headers["Authorization"] for each in server.received} == {"Bearer x"}
    assert {each.headers["Content-Type"] for each in server.received} == {"application/x-protobuf"}


def test_events_and_incidents_are_log_records(recording: Path) -> None:
    first_ns, last_ns = Store.open(recording).span()
    old, new = (
        replace(entry, incident=replace(entry.incident, id=str(to_ns), to_ns=to_ns))
        for entry in [ledger_entry("irq-core-collision", 5, 8)]
        for to_ns in (first_ns - 1, last_ns)
    )
    lines = [{"schema": 1}, {"entry": old.as_json()}, {"entry": new.as_json()}]
    (recording / LEDGER_FILE).write_bytes(b"".join(map(line, lines)))
    with receiving_server() as server:
        sender, end_ns = exporter(recording, server, [], profiles=False)
        assert sender.turn(end_ns)
        data = [LogsData.FromString(body) for body in bodies(server, LOGS_PATH)]
    records = [
        record for part in data for record in part.resource_logs[0].scope_logs[0].log_records
    ]
    assert {record.event_name for record in records} == {"incident", "core_saturated"}
    (incident,) = [record for record in records if record.event_name == "incident"]
    attributes = {each.key: each.value for each in incident.attributes}
    assert attributes["necroscope.cause"].string_value == "irq-core-collision"
    assert attributes["necroscope.core"].int_value == 1
    assert bodies(server, PROFILES_PATH) == []


def test_what_is_refused_is_sent_again_and_does_not_hold_up_the_other_signal(
    recording: Path,
) -> None:
    said: list[str] = []

    def reply(request: Received) -> Reply:
        return refuse(request.path) or (200, {}, b"")

    with receiving_server() as server:
        server.reply = reply
        sender, end_ns = exporter(recording, server, said)
        assert not sender.turn(end_ns)
        assert not sender.turn(end_ns)
        assert len(bodies(server, LOGS_PATH)) == 1
        server.reply = lambda _: (200, {}, b"")
        assert sender.turn(end_ns)
        taken = bodies(server, PROFILES_PATH)
    assert taken[0] == taken[1] == taken[2]
    assert len(said) == 2
    assert "503" in said[0]
    assert said[1] == f"{PROFILES_PATH}: sending again"


def test_what_is_older_than_ten_minutes_is_skipped_and_said(recording: Path) -> None:
    said: list[str] = []
    with receiving_server() as server:
        server.reply = lambda _: (503, {}, b"")
        sender, end_ns = exporter(recording, server, said)
        assert not sender.turn(end_ns)
        server.reply = lambda _: (200, {}, b"")
        assert sender.turn(end_ns + 620 * NS_PER_S)
    assert any("were not sent" in text for text in said)
