"""GET as HTTP/1.0."""

from pathlib import Path

import pytest
from tests.fake_daemon import http, unix_daemon

from necroscope.errors import SourceUnavailable
from necroscope.sources.daemon_socket import DaemonSocket
from necroscope.sources.http_get import http_get


def ask(root: Path, target: str = "/x", limit_bytes: int = 1 << 20) -> tuple[int, bytes]:
    return http_get(
        lambda: DaemonSocket.connect_unix(root, "/d.sock", 2, limit_bytes), target, ("X-Token: t",)
    )


def test_status_and_body_come_back(tmp_path: Path) -> None:
    with unix_daemon(tmp_path / "d.sock", http({"/x": b'{"a": 1}', "/gone": 404})) as daemon:
        assert ask(tmp_path) == (200, b'{"a": 1}')
        assert ask(tmp_path, "/gone") == (404, b"")
        assert daemon.heard[0] == b"GET /x HTTP/1.0\r\nHost: localhost\r\nX-Token: t\r\n\r\n"


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.0",
        b"HTTP/1.0 ok fine\r\n\r\n",
        b"\x00" * 100,
        b"HTTP/2 200\r\n\r\n",
    ],
)
def test_what_is_no_http_is_said(tmp_path: Path, reply: bytes) -> None:
    with (
        unix_daemon(tmp_path / "d.sock", lambda _: reply),
        pytest.raises(SourceUnavailable, match="the answer is not HTTP"),
    ):
        ask(tmp_path)


def test_a_head_without_end_is_given_up(tmp_path: Path) -> None:
    endless = b"HTTP/1.0 200 OK\r\n" + b"A: b\r\n" * 20_000
    with (
        unix_daemon(tmp_path / "d.sock", lambda _: endless),
        pytest.raises(SourceUnavailable, match="the answer is not HTTP"),
    ):
        ask(tmp_path)
