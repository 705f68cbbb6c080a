"""The processes that push and judge a live recording, as its recorder sees them: started, looked
at, started again, never waited for.
"""

import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from necroscope.model.child import AbandonedChildren, Child, Pauses, read_piece
from necroscope.model.names import clean
from necroscope.settings import Settings

_FIRST_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 300.0
# After this long without a failure it had begun well.
_SETTLED_S: Final = 600.0
_END_S: Final = 15.0
_DEATH_S: Final = 1.0
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


def verdicts_command(directory: Path) -> list[str]:
    return [sys.executable, "-P", "-m", "necroscope.verdicts.keeper", str(directory)]


class WatchedProcess:
    """It hears of our end, however we end, by its standard input. What it says to people comes back
    by its standard error, and what it says to us by its standard output.

    `name` is in the notices. With `silent_s` it is ended if it says nothing to us for that long.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
        silent_s: float = math.inf,
    ) -> None:
        self._name = name
        self._command = list(command)
        self._clock = clock
        self._silent_s = silent_s
        self._child: Child | None = None
        self._abandoned = AbandonedChildren()
        self._pauses = Pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _SETTLED_S)
        self._heard_s = 0.0
        self._errors = b""
        self._output = b""
        self._lines: list[str] = []

    def tend(self) -> list[str]:
        """Start it if it is due; returns new notices. Never waits."""
        self._abandoned.reap()
        child, now_s = self._child, self._clock()
        if child is None:
            return self._start() if self._pauses.is_over(now_s) else []
        code = child.status
        self._lines += self._read_output(child)
        notices = self._hear(child)
        if code is None and now_s - self._heard_s <= self._silent_s:
            return notices
        ended = f"ended with {code}" if code is not None else "hung and was killed"
        self._child, self._errors = None, b""
        self._abandoned.leave(child)
        self._pauses.failed(now_s)
        return [*notices, f"{self._name} {ended}; recording goes on, and it is started again"]

    def output(self) -> list[str]:
        """Whole lines of its standard output since the last call."""
        lines, self._lines = self._lines, []
        return lines + (self._read_output(self._child) if self._child is not None else [])

    def end(self) -> list[str]:
        """Let it finish, for a while: the recording has ended, and what it has not done by then it
        does when the next recorder starts it.
        """
        child, self._child = self._child, None
        self._abandoned.end(_DEATH_S)
        if child is None:
            return []
        child.close_input()
        child.wait(_END_S)
        notices = self._hear(child)
        child.end(0.0)
        return notices

    def _start(self) -> list[str]:
        try:
            self._child = Child(self._command, stdin=True, stdout=True, stderr=True)
        except OSError as error:
            self._pauses.failed(self._clock())
            return [f"{self._name} cannot be started: {error.strerror}"]
        self._heard_s, self._output = self._clock(), b""
        return []

    def _read_output(self, child: Child) -> list[str]:
        piece = read_piece(child.stdout)
        if not piece:
            return []
        self._heard_s = self._clock()
        *lines, self._output = (self._output + piece)[-_SAID_BYTES:].split(b"\n")
        return [clean(line, 1000) for line in lines]

    def _hear(self, child: Child) -> list[str]:
        """Whole lines of what it has said to people."""
        self._errors += read_piece(child.stderr) or b""
        *lines, self._errors = self._errors[-_SAID_BYTES:].split(b"\n")
        return [
            f"{self._name}: {clean(line.removeprefix(b'warning: '), 1000)}"
            for line in lines
            if line.strip()
        ]
