"""Keeps the minutes around each catch as a recording of its own: the ring of a long night drops
what is not pinned.

Each is cut by `necroscope excerpt`, one at a time, in a process of the lowest priority: the node is
under test. The first ones are kept, for the newest are in the recording anyway.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from necroscope.model.units import NS_PER_S, format_moment

MOST: Final = 20
_BEFORE_NS: Final = 180 * NS_PER_S
_AFTER_NS: Final = 10 * NS_PER_S
# What is recorded reaches the disk with the recorder's flush.
_FLUSHED_NS: Final = 10 * NS_PER_S
# Lines of the same trouble follow each other.
_SAME_NS: Final = 60 * NS_PER_S
_LONGEST_S: Final = 120.0


@dataclass(slots=True)
class Excerpts:
    """`want` says what was caught, `follow` does what is due; `finish` does the rest, and `abandon`
    leaves it.

    `kept` are the names of those that are there, in `directory`.
    """

    recording: Path
    directory: Path
    kept: list[str]
    _moments_ns: list[int] = field(default_factory=list)
    _due: deque[tuple[Path, int]] = field(default_factory=deque)
    _under_way: tuple[Path, subprocess.Popen[bytes]] | None = None

    def want(self, name: str, moment_ns: int) -> None:
        is_known = any(abs(moment_ns - known_ns) <= _SAME_NS for known_ns in self._moments_ns)
        if not is_known and len(self._moments_ns) < MOST:
            self._moments_ns.append(moment_ns)
            self._due.append((self.directory / f"{len(self._moments_ns):04}-{name}", moment_ns))

    def follow(self, now_ns: int) -> None:
        if self._under_way is not None and self._under_way[1].poll() is not None:
            self._note()
        if (
            self._under_way is None
            and self._due
            and now_ns >= self._due[0][1] + _AFTER_NS + _FLUSHED_NS
        ):
            self._start(*self._due.popleft())

    def finish(self) -> None:
        """Once all is recorded."""
        while self._under_way is not None or self._due:
            if self._under_way is None:
                self._start(*self._due.popleft())
                continue
            try:
                self._under_way[1].wait(_LONGEST_S)
            except subprocess.TimeoutExpired:
                self._under_way[1].kill()
                self._under_way[1].wait()
            self._note()

    def abandon(self) -> None:
        self._due.clear()
        if self._under_way is not None:
            self._under_way[1].kill()
            self._under_way[1].wait()
            self._note()

    def _start(self, directory: Path, moment_ns: int) -> None:
        window = [
            "--from",
            format_moment(moment_ns - _BEFORE_NS),
            "--to",
            format_moment(moment_ns + _AFTER_NS),
        ]
        command = [
            sys.executable,
            "-P",
            "-m",
            "necroscope",
            "excerpt",
            str(self.recording),
            *window,
            "--dir",
            str(directory),
        ]
        # In its own session, for Ctrl-C is for the stakeout.
        quiet = subprocess.DEVNULL
        with contextlib.suppress(
            OSError
        ):  # a node that cannot fork costs this excerpt, not the night
            process = subprocess.Popen(
                command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
            )
            self._under_way = directory, process
            os.setpriority(os.PRIO_PROCESS, process.pid, 19)

    def _note(self) -> None:
        """One that failed leaves nothing that looks like a recording."""
        if self._under_way is None:
            return
        directory, process = self._under_way
        self._under_way = None
        if process.returncode == 0:
            self.kept.append(directory.name)
        else:
            shutil.rmtree(directory, ignore_errors=True)
