"""A daemon on a unix or TCP socket that answers as it is told to, or never: for every source that
talks to one.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

Answer = Callable[[bytes], bytes | None]


class FakeDaemon:
    """`closes`: the end of an answer is the end of its connection, as in HTTP/1.0.

    `answer` is given what came so far and returns bytes to send, or None to wait for more; b""
    closes the connection.
    """

    def __init__(self, listener: socket.socket, answer: Answer, *, closes: bool) -> None:
        self._closes = closes
        self.heard: list[bytes] = []
        self._listener = listener
        self._answer = answer
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            connection.close()
        self._thread.join(2)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        data = b""
        with contextlib.suppress(OSError):
            while piece := connection.recv(65536):
                data += piece
                reply = self._answer(data)
                if reply == b"":
                    break
                if reply is not None:
                    self.heard.append(data)
                    data = b""
                    connection.sendall(reply)
                    if self._closes:
                        break
            connection.close()


@contextlib.contextmanager
def unix_daemon(path: Path, answer: Answer, *, closes: bool = True) -> Iterator[FakeDaemon]:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path.parent.mkdir(parents=True, exist_ok=True)
    listener.bind(str(path))
    listener.listen()
    daemon = FakeDaemon(listener, answer, closes=closes)
    try:
        yield daemon
    finally:
        daemon.close()


@contextlib.contextmanager
def tcp_daemon(answer: Answer, *, closes: bool = True) -> Iterator[FakeDaemon]:
    listener = socket.create_server(("127.0.0.1", 0))
    daemon = FakeDaemon(listener, answer, closes=closes)
    try:
        yield daemon
    finally:
        daemon.close()


def never(_: bytes) -> None:
    """Takes everything and says nothing: a daemon that hangs."""


def http(bodies: dict[str, bytes | int]) -> Answer:
    """Answers by the start of the request's target; a number is a status. The longest start
    wins.
    """

    def answer(request: bytes) -> bytes | None:
        if b"\r\n\r\n" not in request:
            return None
        target = request.split(b" ")[1].decode()
        found = next(
            (
                bodies[start]
                for start in sorted(bodies, key=len, reverse=True)
                if target.startswith(start)
            ),
            404,
        )
        status, body = (found, b"") if isinstance(found, int) else (200, found)
        return b"HTTP/1.0 %d X\r\nContent-Type: application/json\r\n\r\n" % status + body

    return answer
