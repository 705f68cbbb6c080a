"""One run of the job: a session of its own, its output kept within bounds, its cost as the kernel
books it.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from necroscope.errors import UsageError
from necroscope.stakeout.outcome import Run

HINT: Final = "give the job after --, as in: -- ./train.sh"
_HEAD_BYTES: Final = 4 << 20
_TAIL_PIECES: Final = 64
_PIECE_BYTES: Final = 1 << 16
_MERCY_S: Final = 5.0
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class Job:
    """Started when made; `poll` until it returns the run."""

    def __init__(self, number: int, command: Sequence[str], output: Path, time_ns: int) -> None:
        self.number = number
        self.started_ns = time_ns
        self._output = output
        self._stopped = False
        self._peak_rss_bytes: int | None = None
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(
                f"cannot run {command[0]!r}: {error.strerror}",
                "give the job after --, as in: -- ./train.sh",
            ) from None
        assert self._process.stdout is not None
        self._keeper = threading.Thread(
            target=_keep, args=(self._process.stdout, output), daemon=True
        )
        self._keeper.start()

    def note_memory(self, by_session: dict[int, int]) -> None:
        held_bytes = by_session.get(self._process.pid)
        if held_bytes is not None:
            self._peak_rss_bytes = max(held_bytes, self._peak_rss_bytes or 0)

    def poll(self, time_ns: int) -> Run | None:
        """The run once it has ended. What it left running in its session is ended with it."""
        pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        if not pid:
            return None
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._signal(signal.SIGKILL)
        self._keeper.join(_MERCY_S)
        return Run(
            number=self.number,
            started_ns=self.started_ns,
            ended_ns=time_ns,
            exit_code=self._process.returncode,
            cpu_s=usage.ru_utime + usage.ru_stime,
            peak_rss_bytes=self._peak_rss_bytes,
            output=self._output.name,
            stopped=self._stopped,
        )

    def stop(self, time_ns: int) -> Run:
        """Ask it to end, and make it after a while; a run that ended by itself meanwhile keeps its
        outcome.
        """
        run = self.poll(time_ns)
        if run is not None:
            return run
        self._stopped = True
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + _MERCY_S
        while (run := self.poll(time_ns)) is None:
            if time.monotonic() > deadline:
                self._signal(signal.SIGKILL)
            time.sleep(0.05)
        return run

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def memory_by_session() -> dict[int, int]:
    """Bytes that the processes of each session hold now (/proc/PID/stat).

    The kernel's own figure, ru_maxrss, begins with what the parent held when it forked: a small job
    would look like Python.
    """
    held: dict[int, int] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
            session = int(fields[3])
            held[session] = held.get(session, 0) + int(fields[21]) * _PAGE_BYTES
    return held


def _keep(stream: IO[bytes], file: Path) -> None:
    """The first and the last MiB of what it says: a job may say gigabytes in a night."""
    tail: deque[bytes] = deque(maxlen=_TAIL_PIECES)
    written = dropped = 0
    with stream, file.open("wb", buffering=0) as kept:
        while piece := os.read(stream.fileno(), _PIECE_BYTES):
            if written < _HEAD_BYTES:
                kept.write(piece)
                written += len(piece)
                continue
            if len(tail) == _TAIL_PIECES:
                dropped += len(tail[0])
            tail.append(piece)
        if dropped:
            kept.write(f"\n... {dropped} bytes were not kept ...\n".encode())
        kept.writelines(tail)
