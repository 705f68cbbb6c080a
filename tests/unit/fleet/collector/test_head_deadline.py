"""Connections that say nothing, or say it drop by drop, over real sockets."""

import http.client
import select
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from fastapi import FastAPI
from tests.served_collector import served

from necroscope.fleet.collector import head_deadline
from necroscope.fleet.collector.head_deadline import HeadDeadline

REQUEST = b"GET /docs HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(head_deadline, "HEAD_S", 0.3)
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
