"""Victims that measure their own waits: the longest is in a file that the meter reads."""

import os
from pathlib import Path


class NotedWaits:
    """Milliseconds, written when there is a longer one."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._worst_ms = 0
        self._write()

    def note(self, waited_s: float) -> None:
        if 1000 * waited_s > self._worst_ms:
            self._worst_ms = round(1000 * waited_s)
            self._write()

    def _write(self) -> None:
        new = self._path.with_suffix(f".{os.getpid()}")
        new.write_text(f"{self._worst_ms}\n")
        new.replace(self._path)
