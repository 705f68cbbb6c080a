"""The process that pushes a live recording, as its recorder sees it: started, looked at, started
again, never waited for.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from necroscope.model.names import clean
from necroscope.settings import Settings

_FIRST_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 300.0
# A process that lived so long had begun well.
_SETTLED_S: Final = 600.0
_END_S: Final = 15.0
_PIPE_BYTES: Final = 1 << 16


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
        self._child: subprocess.Popen[bytes] | None = None
        self._started_s = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._not_before_s = 0.0
        self._said = b""

    def tend(self) -> list[str]:
        """Start it if it is due; returns what there is to tell. Never waits."""
        told = self._heard()
        now_s = self._clock()
        if self._child is None:
            return told + (self._start() if now_s >= self._not_before_s else [])
        code = self._child.poll()
        if code is None:
            return told
        told += self._heard()
        self._let_go()
        pause_s = _FIRST_PAUSE_S if now_s - self._started_s >= _SETTLED_S else self._pause_s
        self._not_before_s, self._pause_s = now_s + pause_s, min(_LONGEST_PAUSE_S, 2 * pause_s)
        return [*told, f"pushing ended with {code}; recording goes on, and it is started again"]

    def end(self) -> list[str]:
        """Let it finish, for a while: the recording has ended, and what it has not sent by then
        waits in its spool.
        """
        if self._child is None:
            return []
        if self._child.stdin is not None:
            self._child.stdin.close()
        try:
            self._child.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        told = self._heard()
        self._let_go()
        return told

    def _start(self) -> list[str]:
        try:
            pipe = subprocess.PIPE
            self._child = subprocess.Popen(
                self._command, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe
            )
        except OSError as error:
            self._not_before_s = self._clock() + _LONGEST_PAUSE_S
            return [f"pushing cannot be started: {error.strerror}"]
        self._started_s = self._clock()
        if self._child.stderr is not None:
            os.set_blocking(self._child.stderr.fileno(), False)
        return []

    def _heard(self) -> list[str]:
        """Whole lines of what it has said."""
        if self._child is None or self._child.stderr is None:
            return []
        with contextlib.suppress(OSError):
            self._said += os.read(self._child.stderr.fileno(), _PIPE_BYTES)
        *lines, self._said = self._said[-_PIPE_BYTES:].split(b"\n")
        return [
            f"push: {clean(line.removeprefix(b'warning: '), 1000)}"
            for line in lines
            if line.strip()
        ]

    def _let_go(self) -> None:
        child, self._child, self._said = self._child, None, b""
        for stream in (child.stdin, child.stderr) if child is not None else ():
            if stream is not None:
                stream.close()
