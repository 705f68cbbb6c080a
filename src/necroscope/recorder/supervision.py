"""Reports to the recorder's watchdogs that its loop goes round: systemd by sd_notify(3), a probe by
the time of a file.

A loop that is late on a starving node still comes round within minutes; one that hangs in the
kernel does not. So the loop itself reports it, and neither a thread nor the journal's writer does.
"""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ALIVE_FILE: Final = "NECROSCOPE_ALIVE_FILE"
_EVERY_S: Final = 10.0


class Supervision:
    """`tell` is called in each turn of the loop, and says something every ten seconds, or three
    times as often as systemd wants to hear it. The first time it says that recording has begun.
    """

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._socket = environment.get("NOTIFY_SOCKET", "")
        self._file = environment.get(ALIVE_FILE, "")
        period = environment.get("WATCHDOG_USEC", "")
        self._every_s = min(_EVERY_S, int(period) / 3e6) if period.isdecimal() else _EVERY_S
        self._clock = clock
        self._next_s = 0.0
        self._state = b"READY=1\nWATCHDOG=1"

    def tell(self) -> None:
        now_s = self._clock()
        if now_s < self._next_s or not (self._socket or self._file):
            return
        self._next_s = now_s + self._every_s
        if self._socket:
            self._notify()
        if self._file:
            with contextlib.suppress(OSError):
                Path(self._file).touch(0o600)

    def _notify(self) -> None:
        # An abstract name begins with @ in the environment, and with a zero byte for the kernel.
        address = "\0" + self._socket[1:] if self._socket.startswith("@") else self._socket
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender,
        ):
            sender.setblocking(False)
            sender.sendto(self._state, address)
            self._state = b"WATCHDOG=1"
