"""Who is connected to a Unix socket: asked of the running kernel."""

import os
import socket
from pathlib import Path

import pytest

from necroscope.sources import unix_peers
from necroscope.sources.unix_peers import socket_reader


def test_a_client_of_a_socket_is_found_by_its_pid(tmp_path: Path) -> None:
    path = str(tmp_path / "daemon.sock")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)
        connection, _ = server.accept()
        with connection:
            inodes = unix_peers.peers([path])
            found = unix_peers.holders(Path("/"), inodes, socket_reader(Path("/")))
    if not inodes:
        pytest.skip("this kernel does not tell the peers of Unix sockets")
    assert list(found.values()) == [str(os.getpid())]


def test_a_socket_without_a_client_has_none(tmp_path: Path) -> None:
    assert unix_peers.peers([str(tmp_path / "none.sock")]) == []
    assert unix_peers.holders(Path("/"), [], socket_reader(Path("/"))) == {}


@pytest.mark.parametrize("body", [b"", b"\0" * 16, b"\0" * 16 + b"\1\0\0\0", b"\0" * 17])
def test_an_answer_that_is_cut_short_names_nobody(body: bytes) -> None:
    assert unix_peers.parse_socket(body) == (b"", 0)
