"""The process that pushes a live recording, as its recorder sees it: started, looked at, started
again, never waited for.
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from necroscope.model.child import Child, Pauses, read_piece
from necroscope.model.names import clean
from necroscope.settings import Settings

_FIRST_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 300.0
# After this long without a failure it had begun well.
_SETTLED_S: Final = 600.0
_END_S: Final = 15.0
_SAID_BYTES: Final = 1 << 16


def push_command(directory: Path, settings: Settings) -> list[str]:
    """The command line that pushes this recording; the token is in a file, not here."""
    files = {
        "--token-file": settings.push_token_file,
        "--ca-file": settings.push_ca_file,
        "--labels-file": settings.push_labels,
    }
    options = [
        word for name, value in files.items() if value is not None for word in (name, str(value))
    ]
    base = [
        sys.executable,
        "-P",
        "-m",
        "necroscope",
        "fleet",
        "push",
        str(directory),
        "--to",
        settings.push_url or "",
    ]
    return [*base, *options, "--follow", "--while-stdin", "--json"]


class PushProcess:
    """It hears of our end, however we end, by its standard input; what it has to say comes back by
    its standard error.
    """

    def __init__(self, command: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._command = list(command)
        self._clock = clock
        self._child: Child | None = None
        self._pauses = Pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _SETTLED_S)
        self._said = b""

    def tend(self) -> list[str]:
        """Start it if it is due; returns new notices. Never waits."""
        child, now_s = self._child, self._clock()
        if child is None:
            return self._start() if self._pauses.is_over(now_s) else []
        code = child.status
        notices = self._hear(child)
        if code is None:
            return notices
        self._leave(child)
        self._pauses.failed(now_s)
        return [*notices, f"pushing ended with {code}; recording goes on, and it is started again"]

    def end(self) -> list[str]:
        """Let it finish, for a while: the recording has ended, and what it has not sent by then
        waits in its spool.
        """
        child = self._child
        if child is None:
            return []
        child.close_input()
        child.wait(_END_S)
        notices = self._hear(child)
        self._leave(child)
        return notices

    def _start(self) -> list[str]:
        try:
            self._child = Child(self._command, stdin=True, stderr=True)
        except OSError as error:
            self._pauses.failed(self._clock())
            return [f"pushing cannot be started: {error.strerror}"]
        return []

    def _hear(self, child: Child) -> list[str]:
        """Whole lines of what it has said."""
        self._said += read_piece(child.stderr) or b""
        *lines, self._said = self._said[-_SAID_BYTES:].split(b"\n")
        return [
            f"push: {clean(line.removeprefix(b'warning: '), 1000)}"
            for line in lines
            if line.strip()
        ]

    def _leave(self, child: Child) -> None:
        self._child, self._said = None, b""
        child.end(0.0)
