"""Memory that is freed goes back, and heads of requests that do not come are not waited for."""

import http.client
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest
from fastapi import FastAPI
from tests.served_collector import served

from necroscope.fleet.collector import server
from necroscope.fleet.collector.server import HeadDeadline

CODE = """
import pyarrow as pa
from necroscope.fleet.collector.server import give_memory_back
from necroscope.fleet.collector.metrics import resident_memory_bytes
give_memory_back()
pa.repeat(1, 1)  # the first look at a Python value loads pandas, where that is installed
before = resident_memory_bytes()
blocks = [pa.repeat(1, 1_000_000) for _ in range(10)]
held = resident_memory_bytes()
del blocks
print(held - before, resident_memory_bytes() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_large_blocks_go_back_at_once() -> None:
    held, kept = map(int, subprocess.check_output([sys.executable, "-c", CODE]).split())
    assert held > 70_000_000
    assert kept < 16_000_000


REQUEST = b"GET /docs HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(server, "HEAD_S", 0.3)
    with served(FastAPI(), http=HeadDeadline, timeout_keep_alive=60) as client:
        assert client.base_url.port is not None
        yield client.base_url.port


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


@pytest.mark.parametrize("said", [b"", b"G", REQUEST])
def test_who_does_not_finish_a_head_is_left(port: int, said: bytes) -> None:
    with connected(port) as client:
        client.sendall(said)
        assert client.recv(1) == b""


def test_who_drips_a_head_is_left(port: int) -> None:
    with connected(port) as client:
        for _ in range(250):
            if select.select([client], [], [], 0.02)[0]:
                break
            client.sendall(b"G")
        with suppress(ConnectionResetError):  # of a letter that came too late
            assert client.recv(1) == b""


def test_a_connection_that_is_kept_rests_as_long_as_it_may_until_it_begins_a_head(
    port: int,
) -> None:
    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    kept.connect()
    line = kept.sock
    for _ in range(2):
        kept.request("GET", "/docs")
        assert kept.getresponse().read()
        with connected(port) as idle:  # it is left, so more than the deadline has passed
            assert idle.recv(1) == b""
    assert kept.sock is line
    line.sendall(b"GET")
    assert line.recv(1) == b""
    kept.close()
