"""A collector that is served on loopback by a thread of this process, and a client for it."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI


@contextlib.contextmanager
def served(app: FastAPI, **options: Any) -> Iterator[httpx.Client]:
    """Until the block ends; then it is drained as by SIGTERM."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, **options))
    started = threading.Event()
    # Only the main thread may handle signals; and whoever waits wants to know when it serves.
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
    startup = server.startup

    async def startup_and_tell(sockets: list[socket.socket] | None = None) -> None:
        await startup(sockets)
        started.set()

    server.startup = startup_and_tell  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        assert started.wait(20)
        with httpx.Client(
            base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=30
        ) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
        assert not thread.is_alive()
