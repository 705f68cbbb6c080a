"""One deadline for all that is said to a daemon, whatever it does."""

import os
import socket
import time
from pathlib import Path

import pytest
from tests.fake_daemon import never, tcp_daemon, unix_daemon

from necroscope.errors import SourceUnavailable
from necroscope.sources.daemon_socket import DaemonSocket, is_there

LIMIT = 1 << 20


def test_bytes_go_both_ways(tmp_path: Path) -> None:
    with unix_daemon(tmp_path / "run/d.sock", lambda data: data[::-1]):
        connection = DaemonSocket.connect_unix(tmp_path, "/run/d.sock", 5, LIMIT)
        connection.send(b"abc")
        assert connection.receive() == b"cba"
        assert connection.receive() == b""
        connection.close()


def test_a_daemon_that_never_answers_costs_the_deadline(tmp_path: Path) -> None:
    with unix_daemon(tmp_path / "d.sock", never):
        connection = DaemonSocket.connect_unix(tmp_path, "/d.sock", 0.05, LIMIT)
        connection.send(b"abc")
        started = time.monotonic()
        with pytest.raises(SourceUnavailable, match="did not answer in time"):
            connection.receive()
        assert time.monotonic() - started < 2
        connection.close()


def test_a_daemon_that_trickles_costs_the_deadline_too(tmp_path: Path) -> None:
    with unix_daemon(tmp_path / "d.sock", lambda data: data, closes=False):
        connection = DaemonSocket.connect_unix(tmp_path, "/d.sock", 0.1, LIMIT)

        def talk() -> None:
            while True:
                connection.send(b"x")
                connection.receive()

        with pytest.raises(SourceUnavailable, match="did not answer in time"):
            talk()
        connection.close()


def test_a_daemon_that_never_stops_talking_is_cut_off(tmp_path: Path) -> None:
    with unix_daemon(tmp_path / "d.sock", lambda _: b"x" * 100_000):
        connection = DaemonSocket.connect_unix(tmp_path, "/d.sock", 5, 50_000)
        connection.send(b"go")
        with pytest.raises(SourceUnavailable, match="sends more than is accepted"):
            b"".join(iter(connection.receive, b""))
        connection.close()


def test_a_full_backlog_is_said_at_once(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(tmp_path / "d.sock"))
    listener.listen(0)
    kept: list[DaemonSocket] = []

    def connect_often() -> None:
        for _ in range(5):
            kept.append(DaemonSocket.connect_unix(tmp_path, "/d.sock", 0.1, LIMIT))

    with pytest.raises(SourceUnavailable, match="Resource temporarily unavailable"):
        connect_often()
    for connection in kept:
        connection.close()
    listener.close()


def test_an_absolute_symlink_stays_below_the_host_root(tmp_path: Path) -> None:
    with unix_daemon(tmp_path / "run/docker.sock", lambda _: b"host"):
        (tmp_path / "var").mkdir()
        (tmp_path / "var/run").symlink_to("/run")
        connection = DaemonSocket.connect_unix(tmp_path, "/var/run/docker.sock", 5, LIMIT)
        connection.send(b"?")
        assert connection.receive() == b"host"
        connection.close()


def test_a_path_longer_than_a_socket_address_holds_is_reached(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    here = os.getcwd()
    os.chdir(deep)
    try:
        with unix_daemon(Path("d.sock"), lambda _: b"deep"):
            connection = DaemonSocket.connect_unix(tmp_path, f"/{deep.name}/d.sock", 5, LIMIT)
            connection.send(b"?")
            assert connection.receive() == b"deep"
            connection.close()
    finally:
        os.chdir(here)


def test_what_is_no_socket_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not is_there(tmp_path, "/file")
    assert not is_there(tmp_path, "/none")
    with pytest.raises(SourceUnavailable, match="is not a socket"):
        DaemonSocket.connect_unix(tmp_path, "/file", 1, LIMIT)


def test_a_socket_without_a_daemon_says_so(tmp_path: Path) -> None:
    with unix_daemon(tmp_path / "d.sock", never):
        pass
    assert is_there(tmp_path, "/d.sock")
    with pytest.raises(SourceUnavailable, match="Connection refused"):
        DaemonSocket.connect_unix(tmp_path, "/d.sock", 1, LIMIT)


def test_a_tcp_daemon_is_reached_by_its_address() -> None:
    with tcp_daemon(lambda _: b"tcp") as daemon:
        connection = DaemonSocket.connect_tcp("127.0.0.1", daemon.port, 5, LIMIT)
        connection.send(b"?")
        assert connection.receive() == b"tcp"
        connection.close()
