"""The socket that a server of ours listens on: the page, the assistants' door, the collector."""

import socket

from necroscope.errors import UsageError


def listener_on(
    host: str, port: int, hint: str = "choose another --port, or none"
) -> socket.socket:
    try:
        listener = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024
        )
    except OSError as error:
        raise UsageError(f"cannot listen on {host} port {port}: {error.strerror}", hint) from None
    # Connections have it from here. asyncio sets it only where a socket was made for TCP by number,
    # which `create_server` does not. Without it the body of an answer waits until the other side
    # acknowledges the head, for which its kernel may take 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
