"""The collecting process as the recorder sees it: a pipe that is never waited for, and how to be
rid of it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

# The stage that is slow on purpose.
EXECUTABLES: Final = "executables"
_PIECE_BYTES: Final = 1 << 16
_LINE_LIMIT_BYTES: Final = 1 << 16
_TOTAL_LIMIT_BYTES: Final = 16 << 20


def command(root: Path, skip: set[str], *, is_metadata_asked: bool) -> list[str]:
    words = [sys.executable, "-P", "-m", "necroscope.sources.facts.collect", "--root", str(root)]
    words += [word for stage in sorted(skip) for word in ("--skip", stage)]
    return [*words, "--metadata"] if is_metadata_asked else words


class Collector:
    """Started at once. `known` are hashes by identity of the file."""

    def __init__(self, arguments: Sequence[str], known: dict[str, str]) -> None:
        self._child = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._stdout = self._child.stdout
        os.set_blocking(self._stdout.fileno(), False)
        os.set_blocking(self._child.stdin.fileno(), False)
        # More than the pipe holds is not worth waiting for: then all is hashed anew.
        with suppress(OSError):
            self._child.stdin.write(json.dumps(known).encode())
        self._child.stdin.close()
        self._pending = b""
        self._left_bytes = _TOTAL_LIMIT_BYTES
        self.has_ended = False

    def lines(self) -> list[list[str]]:
        """What has come since; after the last of it `has_ended` is True."""
        found: list[list[str]] = []
        while not self.has_ended:
            try:
                piece = os.read(self._stdout.fileno(), _PIECE_BYTES)
            except BlockingIOError:
                break
            self._left_bytes -= len(piece)
            *whole, self._pending = (self._pending + piece).split(b"\n")
            self.has_ended = (
                not piece or self._left_bytes < 0 or len(self._pending) > _LINE_LIMIT_BYTES
            )
            found += [json.loads(line) for line in whole]
        return found

    def kill(self) -> None:
        """Not waited for: in the kernel's hands it may take its time."""
        self._stdout.close()
        if self._child.poll() is None:
            self._child.kill()

    def is_reaped(self) -> bool:
        return self._child.poll() is not None

    def close(self, wait_s: float = 1.0) -> None:
        self.kill()
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(wait_s)
