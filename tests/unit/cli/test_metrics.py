"""`necroscope metrics`: printed once, or served to a scraper while the recording grows."""

import contextlib
import http.client
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.drawn_node import at, drawn_node
from tests.growing_recording import GrowingRecording

from necroscope.cli.metrics import command, parse_listen
from necroscope.errors import UsageError
from necroscope.outlets.metrics_server import MetricsServer
from necroscope.segment.lock import RecordingLock
from necroscope.store.query import Store
from necroscope.verdicts.keeper import Keeper
from necroscope.verdicts.ledger import Ledger
from necroscope.views.prometheus.exposition import CONTENT_TYPE
from necroscope.views.prometheus.node_metrics import NodeMetrics

NODE = f"""
    core 0:  {"." * 60}
    core 1:  {"." * 10}{"x" * 10}{"." * 40}
    x: system  tool[44]  /  main > odd_driver_loop
"""


@pytest.fixture
def recording(tmp_path: Path) -> GrowingRecording:
    return GrowingRecording(tmp_path / "recording", drawn_node(NODE).event(15, "nic_reset"))


@pytest.fixture(autouse=True)
def short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("necroscope.outlets.metrics_server._POLL_S", 0.02)


@contextmanager
def served(recording: GrowingRecording, *, with_verdicts: bool = False) -> Iterator[MetricsServer]:
    metrics = NodeMetrics(Store.open(recording.directory), at(0), "1.2.3", ["rt-hog"])
    with MetricsServer(
        ("127.0.0.1", 0), metrics, recording.directory, with_verdicts=with_verdicts
    ) as server:
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def get(server: MetricsServer, path: str = "/metrics") -> tuple[int, str | None, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type"), response.read().decode()
    finally:
        connection.close()


def test_once_counts_the_last_hour_and_names_the_cause(recording: GrowingRecording) -> None:
    recording.grow(60).seal()
    ran = CliRunner().invoke(command, [str(recording.directory), "--once"], catch_exceptions=False)
    assert ran.exit_code == 0
    assert 'necroscope_events_total{kind="nic_reset"} 1' in ran.stdout
    assert 'necroscope_core_held_seconds_total{mode="system"} 10' in ran.stdout
    assert (
        sum(
            line.startswith("necroscope_last_incident_timestamp_seconds{")
            for line in ran.stdout.splitlines()
        )
        == 1
    )
    short = CliRunner().invoke(
        command, [str(recording.directory), "--once", "--since", "20s", "--no-verdicts"]
    )
    assert 'necroscope_events_total{kind="nic_reset"} 0' in short.stdout


def test_a_scrape_sees_what_came_since_the_last(recording: GrowingRecording) -> None:
    with served(recording.grow(12)) as server:
        status, content_type, text = get(server)
        assert (status, content_type) == (200, CONTENT_TYPE)
        assert 'necroscope_events_total{kind="nic_reset"} 0' in text
        recording.grow(30)
        assert 'necroscope_events_total{kind="nic_reset"} 1' in get(server)[2]
        assert 'necroscope_events_total{kind="nic_reset"} 1' in get(server, "/metrics?again")[2]


def test_what_the_recorder_and_the_exporter_cost_is_reported(recording: GrowingRecording) -> None:
    with served(recording.grow(12)) as server, RecordingLock(recording.directory):
        get(server)
        text = get(server)[2]
        assert "\nnecroscope_recorder_cpu_seconds_total " in text
        assert "\nnecroscope_recorder_resident_bytes " in text
        assert "\nnecroscope_metrics_cpu_seconds_total " in text


def test_other_paths_and_methods_are_refused(recording: GrowingRecording) -> None:
    with served(recording.grow(12)) as server:
        assert get(server, "/healthz")[0] == 200
        assert get(server, "/../etc/passwd")[0] == 404
        connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
        connection.request("POST", "/metrics", b"x")
        assert connection.getresponse().status == 501
        connection.close()


def test_a_recording_that_is_gone_is_an_error_counted_and_the_figures_stay(
    recording: GrowingRecording,
) -> None:
    with served(recording.grow(30)) as server:
        get(server)
        recording.directory.rename(recording.directory.with_name("moved"))
        status, _, text = get(server)
        assert status == 200
        assert "\nnecroscope_metrics_errors_total 1\n" in text
        assert 'necroscope_events_total{kind="nic_reset"} 1' in text


def test_a_bug_is_said_and_the_next_scrape_is_answered(
    recording: GrowingRecording, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(recording.grow(30)) as server:
        with monkeypatch.context() as patch:
            patch.setattr(server._metrics, "look", lambda *_, **__: 1 / 0)
            with pytest.raises(http.client.HTTPException):
                get(server)
        assert "\nnecroscope_metrics_errors_total 1\n" in get(server)[2]
    assert "internal error: ZeroDivisionError" in capsys.readouterr().err


def test_new_incidents_of_the_ledger_are_counted_by_cause(recording: GrowingRecording) -> None:
    keeper = Keeper(recording.grow(9).directory, lambda _: None)
    with served(recording, with_verdicts=True) as server:
        get(server)
        keeper.turn(is_live=True)
        recording.grow(60)
        keeper.turn(is_live=True)
        (entry,) = Ledger.open(recording.directory).incidents()
        cause = f'{{cause="{entry.incident.verdict.cause}"}}'
        for _ in range(2):
            text = get(server)[2]
            assert f"necroscope_incidents_total{cause} 1" in text
            assert f"necroscope_last_incident_core_number{cause} 1" in text
    with served(recording, with_verdicts=True) as server:
        assert f"necroscope_incidents_total{cause} 0" in get(server)[2]


def test_the_recorder_is_up_while_it_holds_its_lock(recording: GrowingRecording) -> None:
    with served(recording.grow(12)) as server:
        assert "\nnecroscope_recorder_up 0\n" in get(server)[2]
        with RecordingLock(recording.directory):
            assert "\nnecroscope_recorder_up 1\n" in get(server)[2]


def test_a_client_that_drips_its_request_is_cut_off_and_holds_up_no_scrape(
    recording: GrowingRecording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("necroscope.outlets.metrics_server._HEAD_S", 0.3)
    with served(recording.grow(12)) as server:
        address = ("127.0.0.1", server.server_address[1])
        with socket.create_connection(address, timeout=10) as dripping:
            dripping.sendall(b"GET /metr")
            assert get(server)[0] == 200
            with contextlib.suppress(ConnectionError):
                while dripping.send(b"i"):
                    if select.select([dripping], [], [], 0.05)[0]:
                        break
            assert dripping.recv(100) == b""


def test_many_silent_clients_leave_the_server_alive(
    recording: GrowingRecording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("necroscope.outlets.metrics_server._HEAD_S", 0.3)
    with served(recording.grow(12)) as server:
        address = ("127.0.0.1", server.server_address[1])
        silent = [socket.create_connection(address, timeout=10) for _ in range(30)]
        assert {client.recv(1) for client in silent} == {b""}
        assert threading.active_count() < 30
        assert get(server)[0] == 200
        for client in silent:
            client.close()


def test_addresses_to_listen_on() -> None:
    assert parse_listen("127.0.0.1:9419") == ("127.0.0.1", 9419)
    assert parse_listen("[::1]:80") == ("::1", 80)
    for text in ("9419", ":9419", "host:", "host:x", "host:70000"):
        with pytest.raises(UsageError, match="is not an address to listen on"):
            parse_listen(text)


def test_a_port_that_is_taken_is_said(recording: GrowingRecording) -> None:
    with served(recording.grow(12)) as server:
        address = f"127.0.0.1:{server.server_address[1]}"
        with pytest.raises(UsageError, match=r"cannot listen on 127\.0\.0\.1 port"):
            CliRunner().invoke(
                command, [str(recording.directory), "--listen", address], catch_exceptions=False
            )
