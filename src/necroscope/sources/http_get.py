"""One HTTP GET with one deadline (RFC 1945): asked as HTTP/1.0, so that the answer is neither
chunked nor kept open.

Not `http.client`: it brings `email` and `ssl` into the recorder, 8 MB for one request line.
"""

from collections.abc import Callable
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.names import clean
from necroscope.sources.daemon_socket import DaemonSocket

_HEAD_LIMIT_BYTES: Final = 1 << 16


def http_get(
    connect: Callable[[], DaemonSocket],
    target: str,
    headers: tuple[str, ...] = (),
    method: str = "GET",
) -> tuple[int, bytes]:
    """Status and body of the answer. The connection's own limits bound time and size."""
    connection = connect()
    try:
        lines = (f"{method} {target} HTTP/1.0", "Host: localhost", *headers)
        connection.send("".join(f"{line}\r\n" for line in (*lines, "")).encode("ascii"))
        data = bytearray()
        while piece := connection.receive():
            data += piece
            if b"\r\n\r\n" not in data and len(data) > _HEAD_LIMIT_BYTES:
                break
    finally:
        connection.close()
    return _parse(bytes(data))


def _parse(data: bytes) -> tuple[int, bytes]:
    head, blank, body = data.partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split()
    if not blank or len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise SourceUnavailable(f"the answer is not HTTP: {clean(data[:40])}")
    return int(words[1]), body
