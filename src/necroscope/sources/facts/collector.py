"""The collecting process as the recorder sees it: lines of a pipe that is never waited for."""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from necroscope.model.child import Child, Start, read_piece, start_process

# The stage that is slow on purpose.
EXECUTABLES: Final = "executables"
_LINE_LIMIT_BYTES: Final = 1 << 16
_TOTAL_LIMIT_BYTES: Final = 16 << 20


def command(
    root: Path, skip: set[str], *, is_metadata_asked: bool, own: Path | None = None
) -> list[str]:
    """`own` is the file of the operator's own facts."""
    words = [sys.executable, "-P", "-m", "necroscope.sources.facts.collect", "--root", str(root)]
    words += ["--metadata"] if is_metadata_asked else []
    words += ["--own", str(own)] if own is not None else []
    return [*words, *(word for stage in sorted(skip) for word in ("--skip", stage))]


class FactsCollector(Child):
    """`known` are hashes by identity of the file."""

    def __init__(
        self, arguments: Sequence[str], known: dict[str, str], start: Start = start_process
    ) -> None:
        super().__init__(arguments, stdin=True, stdout=True, start=start)
        # More than the pipe holds is not worth waiting for: then all is hashed again.
        with suppress(OSError):
            os.write(self.stdin, json.dumps(known).encode())
        self.close_input()
        self._pending = b""
        self._left_bytes = _TOTAL_LIMIT_BYTES
        self.has_ended = False

    def lines(self) -> list[list[str]]:
        """What has come since; after the last of it `has_ended` is True."""
        found: list[list[str]] = []
        while not self.has_ended:
            piece = read_piece(self.stdout)
            if piece is None:
                break
            self._left_bytes -= len(piece)
            *whole, self._pending = (self._pending + piece).split(b"\n")
            self.has_ended = (
                not piece or self._left_bytes < 0 or len(self._pending) > _LINE_LIMIT_BYTES
            )
            found += [json.loads(line) for line in whole]
        return found
