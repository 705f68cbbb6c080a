"""The collector as a process: killed while nodes push, twice at once, on a full and a read-only
disk, over TLS, told to end.
"""

import contextlib
import http.client
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collector_process import TOKEN, CollectorProcess, collector
from tests.fleet_batches import made_batch, rows_in, sequences_in

from necroscope.fleet.compaction import ABANDONED_NS, Compactor
from necroscope.fleet.lake import Lake
from necroscope.fleet.protocol import BATCHES_PATH, encode

QUICK = ("--commit-every", "20ms", "--compact-every", "200ms", "--node-rate", "1000")
NODES = 4
BATCHES = 25


class Node(threading.Thread):
    """Pushes its batches in order, each again until it is acknowledged."""

    def __init__(self, name: str, ports: list[int]) -> None:
        super().__init__(name=name)
        self.ports = ports
        self.acknowledged: list[int] = []
        self.resent = 0

    def run(self) -> None:
        for number in range(BATCHES):
            while not self._push(number):
                self.resent += 1
                time.sleep(0.02)  # as a node's back-off
            self.acknowledged.append(number)

    def _push(self, number: int) -> bool:
        """To every collector there is; the first that takes it is enough, but all may."""
        statuses = [_status(port, encode(made_batch(self.name, number))) for port in self.ports]
        return 200 in statuses


def _status(port: int, body: bytes) -> int | None:
    with contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    ) as connection:
        try:
            connection.request("POST", BATCHES_PATH, body, {"Authorization": f"Bearer {TOKEN}"})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None


def finish_compaction(lake: Lake) -> None:
    """What a collector that is started a minute later does with what the killed one left."""
    Compactor(lake, "later", lambda: time.time_ns() + 2 * ABANDONED_NS).compact()


def expected() -> list[tuple[str, int]]:
    return [(f"n{node}", number) for node in range(NODES) for number in range(BATCHES)]


def test_killed_while_nodes_push_every_batch_is_there_once(tmp_path: Path) -> None:
    lake, tokens = Lake.open(str(tmp_path / "lake")), tmp_path / "tokens.toml"
    process = CollectorProcess(lake.url, tokens, *QUICK)
    nodes = [Node(f"n{number}", [process.port]) for number in range(NODES)]
    for node in nodes:
        node.start()
    for kill_at in (20, 60):
        while sum(len(node.acknowledged) for node in nodes) < kill_at:
            time.sleep(0.001)
        process.kill()
        acknowledged = {(node.name, number) for node in nodes for number in list(node.acknowledged)}
        process = CollectorProcess(lake.url, tokens, *QUICK, "--port", str(process.port))
        assert acknowledged <= in_lake_with_inbox(lake, tmp_path / f"copy-{kill_at}")
    for node in nodes:
        node.join()
    assert process.terminate() == 0
    finish_compaction(lake)
    assert sequences_in(lake) == expected()
    assert len(rows_in(lake, "pulses")) == NODES * BATCHES
    assert lake.list("inbox") == []
    assert sum(node.resent for node in nodes) > 0


def in_lake_with_inbox(lake: Lake, copy: Path) -> set[tuple[str, int]]:
    """Of a copy, made while the next collector works: the inbox first, because its files become
    tables meanwhile.
    """
    twin = Lake.open(str(copy))
    for place in ("inbox", "tables"):
        for path in lake.list(place):
            with contextlib.suppress(Exception):
                twin.put(path, lake.read(path))
    finish_compaction(twin)
    return set(sequences_in(twin))


def test_two_collectors_at_once_that_get_every_batch_both(tmp_path: Path) -> None:
    lake, tokens = Lake.open(str(tmp_path / "lake")), tmp_path / "tokens.toml"
    with (
        collector(lake.url, tokens, *QUICK) as first,
        collector(lake.url, tokens, *QUICK) as second,
    ):
        nodes = [Node(f"n{number}", [first.port, second.port]) for number in range(NODES)]
        for node in nodes:
            node.start()
        for node in nodes:
            node.join()
        assert first.terminate() == second.terminate() == 0
    assert lake.list("inbox") == []
    assert lake.dataset("events").count_rows() > NODES * BATCHES, "both have stored them"
    assert sequences_in(lake) == expected()
    assert len(rows_in(lake, "pulses")) == NODES * BATCHES


def test_until_end_signal_it_answers_what_has_come(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "lake"))
    with collector(lake.url, tmp_path / "tokens.toml", "--commit-every", "1h") as process:
        answers: list[int] = []
        pushing = threading.Thread(target=lambda: answers.append(process.push("n1", 7)))
        pushing.start()
        while process.metric("queue_requests") == 0:
            time.sleep(0.005)
        process.tell_to_end()
        pushing.join(20)
        assert process.wait() == 0
    assert answers == [200]
    assert sequences_in(lake) == [("n1", 7)]
    assert "everything acknowledged is in the lake" in process.log[-1]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "none", path], check=True)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


@pytest.mark.root
@pytest.mark.kernel
def test_a_full_disk_acknowledges_nothing_that_it_cannot_keep(
    tmp_path: Path, small_disk: Path
) -> None:
    lake = Lake.open(str(small_disk / "lake"))
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1 << 20))
    with collector(lake.url, tmp_path / "tokens.toml", *QUICK, "--free-floor", "256KiB") as process:
        assert process.push("n1", 0) == 200
        with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        with contextlib.closing(process.connect()) as connection:
            connection.request(
                "POST",
                BATCHES_PATH,
                encode(made_batch("n1", 1)),
                {"Authorization": f"Bearer {TOKEN}"},
            )
            answer = connection.getresponse()
            assert (answer.status, answer.getheader("Retry-After")) == (503, "30")
            assert b"the lake is full" in answer.read()
        assert process.ask("GET", "/healthz")[0] == 503
        ballast.unlink()
        assert process.push("n1", 2) == 200
        assert process.ask("GET", "/healthz")[0] == 200
    assert sequences_in(lake) == [("n1", 0), ("n1", 2)]


@pytest.mark.root
@pytest.mark.kernel
def test_a_read_only_disk_is_503_until_it_is_writable(tmp_path: Path, small_disk: Path) -> None:
    lake = Lake.open(str(small_disk / "lake"))
    with collector(lake.url, tmp_path / "tokens.toml", *QUICK) as process:
        assert process.push("n1", 0) == 200
        while lake.list("inbox"):
            time.sleep(0.01)
        subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
        status, answer = process.ask("POST", BATCHES_PATH, encode(made_batch("n1", 1)))
        assert (status, "Read-only file system" in answer) == (503, True)
        while not any("answered with 503" in line for line in process.log):
            time.sleep(0.01)
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
        while process.ask("GET", "/healthz")[0] != 200:
            time.sleep(0.02)
        assert process.push("n1", 1) == 200
    assert sequences_in(lake) == [("n1", 0), ("n1", 1)]
    assert any("pushes: goes on" in line for line in process.log)


def test_a_gigabyte_is_refused_without_being_read(tmp_path: Path) -> None:
    with collector(str(tmp_path / "lake"), tmp_path / "tokens.toml") as process:
        before_bytes = process.metric("resident_memory_bytes")
        with contextlib.closing(process.connect()) as connection:
            connection.putrequest("POST", BATCHES_PATH)
            connection.putheader("Authorization", f"Bearer {TOKEN}")
            connection.putheader("Content-Length", str(1 << 30))
            connection.endheaders()
            connection.send(bytes(1 << 20))
            assert connection.getresponse().status == 413
        with contextlib.closing(process.connect()) as connection:
            connection.putrequest("POST", BATCHES_PATH)
            connection.putheader("Authorization", f"Bearer {TOKEN}")
            connection.putheader("Transfer-Encoding", "chunked")
            connection.endheaders()
            chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
            with contextlib.suppress(ConnectionError):
                for _ in range(64):
                    connection.send(chunk)
            with contextlib.suppress(ConnectionError):
                assert connection.getresponse().status == 413
        assert process.metric("resident_memory_bytes") < before_bytes + (64 << 20)
        assert process.push("n1", 0) == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    directory = tmp_path_factory.mktemp("tls")
    cert, key = directory / "cert.pem", directory / "key.pem"
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    names = [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        str(key),
        "-out",
        str(cert),
    ]
    subprocess.run([*words, *names], check=True, capture_output=True)
    return cert, key


def test_over_tls_on_a_public_address(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    options = ("--host", "0.0.0.0", "--tls-cert", str(cert), "--tls-key", str(key), *QUICK)
    with collector(
        str(tmp_path / "lake"), tmp_path / "tokens.toml", *options, ca_file=cert
    ) as process:
        assert "https://0.0.0.0:" in process.log[0]
        assert process.push("n1", 0) == 200
        assert process.ask("GET", "/v1/nodes")[0] == 403, "who pushes may not read"
        assert _status(process.port, encode(made_batch("n1", 1))) is None, (
            "nobody is answered in the clear"
        )
    assert sequences_in(Lake.open(str(tmp_path / "lake"))) == [("n1", 0)]


def test_a_connection_that_says_nothing_is_closed_while_nodes_push(tmp_path: Path) -> None:
    with collector(str(tmp_path / "lake"), tmp_path / "tokens.toml", *QUICK) as process:
        with socket.create_connection(("127.0.0.1", process.port), timeout=30) as silent:
            assert process.push("n", 1) == 200
            assert silent.recv(1) == b""
        assert process.push("n", 2) == 200
