"""HTTP/1.1 as uvicorn speaks it, but for the head of a request: who sends none, or drips it, is not
waited for.

uvicorn bounds only the rest between two requests. Without a bound before them, a machine that opens
connections and says nothing takes the places of all nodes.
"""

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S: Final = 10.0


class HeadDeadline(H11Protocol):
    """From the first moment of a connection, and from the first byte after a rest, until the head
    is whole.
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
