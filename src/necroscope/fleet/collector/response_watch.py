"""Counts answers by status, and gives each the headers that keep browsers from doing more with it
than it is for.
"""

from typing import Final

from necroscope.fleet.collector.metrics import Metrics
from necroscope.views.web.guard import POLICY, Application, Message, Receive, Scope, Send

_HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class ResponseWatch:
    def __init__(self, app: Application, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.add("requests", 1, str(message["status"]))
                have = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in _HEADERS if pair[0] not in have),
                ]
            await send(message)

        await self._app(scope, receive, send_watched if scope["type"] == "http" else send)
