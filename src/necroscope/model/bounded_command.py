"""A command that the user gives, run without a shell and within bounds: of time, of output, and
without a process left behind.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from necroscope.model.child import Child, read_piece

_LOOK_S: Final = 0.25
_DEATH_S: Final = 1.0


class CommandEnd(NamedTuple):
    """`status` as it ended, None if it was ended for being late or for printing too much. `output`
    is what it printed, at most as much as was asked for.
    """

    status: int | None
    output: bytes
    is_late: bool = False
    is_cut: bool = False

    @property
    def words(self) -> str:
        """How it ended."""
        if self.is_late:
            return "took too long"
        if self.is_cut:
            return "printed too much"
        if self.status is not None and self.status < 0:
            return f"was ended by signal {-self.status}"
        return f"ended with status {self.status}"


def run_bounded(
    command: Sequence[str],
    timeout_s: float,
    limit_bytes: int,
    clock: Callable[[], float] = time.monotonic,
) -> CommandEnd:
    """OSError if it cannot be started. All that it has started in its process group ends with
    it.
    """
    child = Child(command, stdout=True, deadline_s=timeout_s, clock=clock)
    output = b""
    is_over = False
    try:
        while not is_over and len(output) <= limit_bytes and not child.is_late:
            select.select([child.stdout], [], [], min(_LOOK_S, timeout_s))
            piece = read_piece(child.stdout)
            # Its own end, and not that of a pipe which a daemon of its keeps open.
            is_over = piece == b"" or (piece is None and child.status is not None)
            output += piece or b""
        is_cut = len(output) > limit_bytes
        # A program that has closed its output may still run.
        while not is_cut and child.status is None and not child.is_late:
            child.wait(_LOOK_S)
        is_late = child.is_late
        status = None if is_cut or is_late else child.status
        return CommandEnd(status, output[:limit_bytes], is_late=is_late, is_cut=is_cut)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.end(_DEATH_S)
