"""Sending over real sockets: one connection, every wait bounded, every answer judged."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.receiving_server import dripping_server, make_certificate, receiving_server

from necroscope.errors import UsageError
from necroscope.outlets.push.sender import PushOutcome, Sender

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@contextmanager
def scripted(*connections: list[bytes | None]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that for each connection answers its requests with these bytes; None is silence
    until the client goes.
    """
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(10)
    requests: list[bytes] = []

    def serve() -> None:
        for answers in connections:
            client, _ = server.accept()
            with client:
                client.settimeout(10)
                for answer in answers:
                    requests.append(_request(client))
                    if answer is None:
                        client.recv(1)
                    else:
                        client.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}", requests
    finally:
        thread.join(10)
        server.close()


def _request(client: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += client.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(
        next(
            (
                line.split(b":")[1]
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            ),
            b"0",
        )
    )
    while len(body) < length:
        body += client.recv(65536)
    return head + b"\r\n\r\n" + body


def test_one_connection_is_kept_for_many_requests(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    with scripted([OK, OK]) as (url, requests):
        sender = Sender(f"{url}/base/", tmp_path / "token")
        assert sender.send_batch(b"body", 7).outcome is PushOutcome.TAKEN
        assert sender.send_bundle("x.y", "node-a", 5, b"bundle").outcome is PushOutcome.TAKEN
        sender.close()
    assert requests[0].startswith(b"POST /base/v1/batches HTTP/1.1\r\n")
    assert b"Authorization: Bearer secret\r\n" in requests[0]
    assert b"Content-Encoding: gzip\r\n" in requests[0]
    assert b"X-Necroscope-Sent-Ns: 7\r\n" in requests[0]
    assert requests[1].startswith(b"PUT /base/v1/bundles/x.y HTTP/1.1\r\n")
    assert b"X-Necroscope-Node: node-a\r\nX-Necroscope-Time-Ns: 5\r\n" in requests[1]


def test_a_kept_connection_that_was_closed_meanwhile_is_made_anew() -> None:
    with scripted([OK], [OK]) as (url, requests):
        sender = Sender(url)
        assert sender.send_batch(b"1", 1).outcome is PushOutcome.TAKEN
        assert sender.send_batch(b"2", 1).outcome is PushOutcome.TAKEN
        sender.close()
    assert len(requests) == 2


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (200, PushOutcome.TAKEN),
        (204, PushOutcome.TAKEN),
        (400, PushOutcome.REFUSED),
        (413, PushOutcome.REFUSED),
        (401, PushOutcome.DENIED),
        (403, PushOutcome.DENIED),
        (404, PushOutcome.DENIED),
        (302, PushOutcome.DENIED),
        (408, PushOutcome.LATER),
        (429, PushOutcome.LATER),
        (500, PushOutcome.LATER),
        (503, PushOutcome.LATER),
    ],
)
def test_answers_are_judged(status: int, verdict: PushOutcome) -> None:
    with receiving_server() as server:
        server.reply = lambda _: (
            status,
            {},
            b'{"error": "because", "hint": "do this"}' if status != 204 else b"",
        )
        sender = Sender(server.url)
        answer = sender.send_batch(b"body", 1)
        sender.close()
    assert answer.outcome is verdict
    assert answer.text == (
        ""
        if verdict is PushOutcome.TAKEN
        else f"the collector answered {status}: because (do this)"
    )


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("999999", 3600.0), ("soon", None), ("", None)]
)
def test_retry_after_is_heard(header: str, seconds: float | None) -> None:
    with receiving_server() as server:
        server.reply = lambda _: (429, {"Retry-After": header}, b"")
        sender = Sender(server.url)
        assert sender.send_batch(b"body", 1).wait_s == seconds
        sender.close()


def test_a_collector_that_hangs_is_left_after_a_while() -> None:
    with scripted([None]) as (url, _):
        answer = Sender(url, timeout_s=0.2).send_batch(b"body", 1)
    assert answer.outcome is PushOutcome.LATER
    assert "timed out" in answer.text


def test_a_collector_that_drips_bytes_is_left_too() -> None:
    with dripping_server(b"HTTP/1.1 200 OK\r\nX-Long: ") as place:
        answer = Sender(f"http://{place}", timeout_s=5, deadline_s=0.5).send_batch(b"body", 1)
    assert (answer.outcome, answer.text) == (
        PushOutcome.LATER,
        "127.0.0.1: no whole answer within 0.5 s",
    )


def test_nobody_there_is_a_reason_to_wait() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    answer = Sender(f"http://127.0.0.1:{port}").send_batch(b"body", 1)
    assert answer.outcome is PushOutcome.LATER
    assert "refused" in answer.text


def test_an_endless_answer_is_not_read() -> None:
    with scripted([b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 70_000]) as (
        url,
        _,
    ):
        sender = Sender(url, timeout_s=0.5)
        assert sender.send_batch(b"body", 1).outcome is not PushOutcome.REFUSED


def test_something_that_is_no_http_is_a_bad_moment() -> None:
    with scripted([b"SSH-2.0-OpenSSH\r\n"]) as (url, _):
        assert Sender(url, timeout_s=0.5).send_batch(b"body", 1).outcome is PushOutcome.LATER


def test_tls_with_a_ca_file_and_not_without(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    with receiving_server(certificate) as server:
        known = Sender(server.url, ca_file=tmp_path / "ca.crt")
        assert known.send_batch(b"body", 1).outcome is PushOutcome.TAKEN
        known.close()
        unknown = Sender(server.url).send_batch(b"body", 1)
        assert unknown.outcome is PushOutcome.LATER
        assert "certificate verify failed" in unknown.text
        assert len(server.received) == 1


def test_a_token_is_read_anew_and_a_missing_one_is_reported(tmp_path: Path) -> None:
    token = tmp_path / "token"
    with receiving_server() as server:
        sender = Sender(server.url, token)
        denied = sender.send_batch(b"body", 1)
        assert denied.outcome is PushOutcome.DENIED
        assert "cannot read the token" in denied.text
        for text in ("one", "two"):
            token.write_text(text)
            assert sender.send_batch(b"body", 1).outcome is PushOutcome.TAKEN
        sender.close()
    assert [request.headers["Authorization"] for request in server.received] == [
        "Bearer one",
        "Bearer two",
    ]


def test_a_token_cannot_smuggle_a_header(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\r\nX-Evil: 1")
    with receiving_server() as server:
        assert (
            Sender(server.url, tmp_path / "token").send_batch(b"body", 1).outcome
            is PushOutcome.LATER
        )
        assert server.received == []


def test_a_token_in_the_clear_is_noticed_beyond_this_machine(tmp_path: Path) -> None:
    token = tmp_path / "token"
    assert Sender("http://collector:7443", token).is_open_to_all
    assert not Sender("http://collector:7443").is_open_to_all
    assert not Sender("http://127.0.0.1:7443", token).is_open_to_all
    assert not Sender("https://collector:7443", token).is_open_to_all


@pytest.mark.parametrize("url", ["collector:7443", "ftp://x", "https://", "http://user:pass@host/"])
def test_an_address_that_is_none_is_an_error(url: str) -> None:
    with pytest.raises(UsageError):
        Sender(url)
