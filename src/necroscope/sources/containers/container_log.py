"""The last lines that a container printed, by the API of its daemon, which knows where its log
driver keeps them: bounded, cleaned, and only when a check-up asks.

A container that is re-created is asked for by its name. It has said why it dies when it has ended:
until then, and between two lives, it is asked again.
"""

import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from necroscope.errors import SourceUnavailable
from necroscope.model.names import clean
from necroscope.sources.containers import docker_api
from necroscope.sources.daemon_socket import DaemonSocket, is_there
from necroscope.sources.http_get import http_get

_TIMEOUT_S: Final = 3.0
_PAUSE_S: Final = 0.2
_ANSWER_BYTES: Final = 1 << 18
_LINE_LIMIT: Final = 300
_FOUND: Final = 200
_RUNNING: Final = "running"
# Docker's "multiplexed" stream: stdout or stderr, three zeros, the length.
_FRAME: Final = struct.Struct(">BxxxI")


def read_last_lines(
    root: Path, sockets: Sequence[tuple[str, str]], name: str, lines: int, seconds: float
) -> tuple[str, ...]:
    """Nothing where the daemon has no such container in that time, or its log cannot be read."""
    deadline = time.monotonic() + seconds
    own = [(runtime, path) for runtime, path in sockets if is_there(root, path)]
    found: tuple[str, ...] = ()
    while own:
        for runtime, path in own:
            said, has_ended = _ask(root, runtime, path, name, lines)
            found = said or found
            if said and has_ended:
                return said
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            break
        time.sleep(min(_PAUSE_S, left_s))
    return found


def _ask(
    root: Path, runtime: str, path: str, name: str, lines: int
) -> tuple[tuple[str, ...], bool]:
    """What it said, and whether that is all."""
    container = quote(name, safe="")
    targets = (
        docker_api.inspect_target(container),
        f"/containers/{container}/logs?stdout=1&stderr=1&tail={lines}",
    )
    try:
        (found, state), (logged, log) = (
            http_get(
                lambda: DaemonSocket.connect_unix(root, path, _TIMEOUT_S, _ANSWER_BYTES), target
            )
            for target in targets
        )
        has_ended = found == _FOUND and docker_api.parse_inspect(state, runtime).state != _RUNNING
    except (SourceUnavailable, KeyError, TypeError, ValueError, AttributeError):
        return (), False
    return (parse_lines(log)[-lines:], has_ended) if logged == _FOUND else ((), False)


def parse_lines(body: bytes) -> tuple[str, ...]:
    """A container with a terminal has a log without frames."""
    text = b"".join(_frames(body)) if body[:4] in (b"\1\0\0\0", b"\2\0\0\0") else body
    return tuple(clean(line, _LINE_LIMIT) for line in text.splitlines() if line.strip())


def _frames(body: bytes) -> Iterator[bytes]:
    place = 0
    while place + _FRAME.size <= len(body):
        _, length = _FRAME.unpack_from(body, place)
        place += _FRAME.size
        yield body[place : place + length]
        place += length
