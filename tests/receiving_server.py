"""A real HTTP or HTTPS server on loopback that a test scripts: it keeps what it was sent, and
answers as it is told to.
"""

import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

Reply = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


@dataclass
class ReceivingServer:
    """`replies` are given one after the other; then `reply` decides, which says 200 unless the test
    sets another.
    """

    url: str = ""
    received: list[Received] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    reply: Callable[[Received], Reply] = lambda _: (200, {}, b"")

    def answer(self, request: Received) -> Reply:
        self.received.append(request)
        return self.replies.pop(0) if self.replies else self.reply(request)


@contextmanager
def receiving_server(certificate: Path | None = None) -> Iterator[ReceivingServer]:
    """With a certificate (file of key and certificate) over TLS."""
    found = ReceivingServer()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, answer = found.answer(
                Received(self.command, self.path, dict(self.headers.items()), body)
            )
            if status == 0:  # hang up without a word
                return
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(answer))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PATCH = do_PUT = handle_any  # noqa: N815 - as http.server names them

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] - a refused handshake is what some tests want
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    found.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02))
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def dripping_server(answer: bytes) -> Iterator[str]:
    """Gives its first client this answer, and then another x every 20 ms until it goes; yields host
    and port.
    """
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(10)
    is_over = threading.Event()

    def drip() -> None:
        client, _ = server.accept()
        with client, suppress(OSError):
            client.sendall(answer)
            while not is_over.wait(0.02):
                client.sendall(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}"
    finally:
        is_over.set()
        thread.join()
        server.close()


def make_certificate(directory: Path, *addresses: str) -> Path:
    """Key and certificate of these addresses (none: 127.0.0.1) in one file, which is its own
    authority too.
    """
    names = ",".join(f"IP:{address}" for address in addresses or ("127.0.0.1",))
    key, certificate, both = directory / "key.pem", directory / "ca.crt", directory / "server.pem"
    subject = ["-subj", "/CN=necroscope test", "-addext", f"subjectAltName={names}", "-days", "2"]
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        *subject,
    ]
    subprocess.run(
        [*command, "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=30
    )
    both.write_text(key.read_text() + certificate.read_text())
    return both
