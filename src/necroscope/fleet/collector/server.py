"""Serves a collector until a signal ends it: bounded connections, heads of requests in time, freed
memory given back.
"""

import asyncio
import contextlib
import resource
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import h11
import pyarrow as pa
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from necroscope.model import allocator

HEAD_S: Final = 10.0
_DRAIN_S: Final = 30
# A node comes once per minute, and need not open a connection each time.
_KEEP_ALIVE_S: Final = 90
_MOST_CONNECTIONS: Final = 8192


def give_memory_back() -> None:
    """Large blocks come from mmap and go back at once; elsewhere than on glibc only the pool
    changes.

    A collector lives for weeks, and merging takes much for a moment; Arrow's own allocator and
    glibc's arenas keep what they have had. Measured on a merge that needs 118 MiB at its peak: 308
    MiB resident and 265 after it with the defaults, 198 and 126 with this.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    allocator.give_memory_back(1 << 18, arenas=2)


class HeadDeadline(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, but a client that sends no head of a request, or drips it, is
    not waited for: from the first moment of a connection, and from the first byte after a rest,
    until the head is complete.

    uvicorn bounds only the rest between two requests. Without a bound before them, a machine that
    opens connections and says nothing takes the places of all nodes.
    """

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._mind_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._mind_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget_head()

    def _mind_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._forget_head()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_S, self.timeout_keep_alive_handler)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def serve(
    app: FastAPI,
    listener: socket.socket,
    tls_cert: Path | None,
    tls_key: Path | None,
    say: Callable[[str], None],
) -> None:
    """Blocks until SIGTERM or Ctrl-C, then answers what has come."""
    give_memory_back()
    _raise_file_limit()
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        http=HeadDeadline,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_DRAIN_S,
        timeout_keep_alive=_KEEP_ALIVE_S,
        server_header=False,
    )
    hurry = app.state.collector.commits.hurry
    asyncio.run(_serve_until_signal(uvicorn.Server(config), listener, hurry, say))


async def _serve_until_signal(
    server: uvicorn.Server,
    listener: socket.socket,
    hurry: Callable[[], None],
    say: Callable[[str], None],
) -> None:
    """uvicorn's own handlers end the process by the signal after the drain; a drained collector has
    ended well.
    """
    loop = asyncio.get_running_loop()
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]

    def end() -> None:
        if not server.should_exit:
            say("a signal ends the collector: answering what has come")
        server.should_exit = True
        hurry()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    await server.serve([listener])


def _raise_file_limit() -> None:
    """Each node keeps a connection."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
