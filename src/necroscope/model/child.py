"""A process that is started, watched, abandoned when it hangs, and started again after a pause.

A process in uninterruptible sleep (state D) does not die of SIGKILL until the kernel lets it go. So
no wait here is without a limit: a child that hangs is killed and left, and reaped when it is dead.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, Final, Protocol

_PIECE_BYTES: Final = 1 << 16
# For a child that was killed and is not stuck in the kernel.
_DEATH_S: Final = 1.0


class Process(Protocol):
    """What is needed of subprocess.Popen."""

    @property
    def pid(self) -> int: ...

    @property
    def stdin(self) -> IO[bytes] | None: ...

    @property
    def stdout(self) -> IO[bytes] | None: ...

    @property
    def stderr(self) -> IO[bytes] | None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float) -> int: ...

    def kill(self) -> None: ...


# Takes the words of a command and the options of subprocess.Popen.
Start = Callable[..., Process]


def start_process(command: Sequence[str], **options: Any) -> Process:
    """With all that we have ourselves."""
    return subprocess.Popen(command, **options)


class Child:
    """Started at once; OSError if that fails. Its pipes never block, and a ^C on the terminal does
    not reach it. It is late when it runs longer than `deadline_s`. `start` makes the process, by
    default as a child that has what we have.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: bool = False,
        stdout: bool = False,
        stderr: bool = False,
        deadline_s: float = float("inf"),
        directory: str | None = None,
        pass_fds: Sequence[int] = (),
        clock: Callable[[], float] = time.monotonic,
        start: Start = start_process,
    ) -> None:
        ends = [
            subprocess.PIPE if piped else subprocess.DEVNULL for piped in (stdin, stdout, stderr)
        ]
        self._process = start(
            command,
            bufsize=0,
            stdin=ends[0],
            stdout=ends[1],
            stderr=ends[2],
            cwd=directory,
            process_group=0,
            pass_fds=pass_fds,
        )
        self._clock = clock
        self._late_s = clock() + deadline_s
        for stream in self._streams():
            os.set_blocking(stream.fileno(), False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """As it ended; None while it runs. Asking reaps it."""
        return self._process.poll()

    @property
    def is_late(self) -> bool:
        return self._clock() > self._late_s and self.status is None

    @property
    def stdin(self) -> int:
        return _descriptor(self._process.stdin)

    @property
    def stdout(self) -> int:
        return _descriptor(self._process.stdout)

    @property
    def stderr(self) -> int:
        return _descriptor(self._process.stderr)

    def wait(self, seconds: float) -> int | None:
        """Its status, None if it runs on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(seconds, 0.0))
        return self.status

    def close_input(self) -> None:
        """It hears of our end, or that nothing more will come."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """Does not wait for its death."""
        if self.status is None:
            self._process.kill()
        self._close_pipes()

    def end(self, seconds: float) -> None:
        """Closed pipes end a healthy child; one that does not end in time is killed, and left
        if the kernel does not let it go.
        """
        self._close_pipes()
        if self.wait(seconds) is None:
            self.kill()
            self.wait(_DEATH_S)

    def _streams(self) -> list[IO[bytes]]:
        process = self._process
        return [
            pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe is not None
        ]

    def _close_pipes(self) -> None:
        for stream in self._streams():
            stream.close()


def read_piece(descriptor: int, limit: int = _PIECE_BYTES) -> bytes | None:
    """What a pipe holds now: None if nothing, empty at its end."""
    try:
        return os.read(descriptor, limit)
    except BlockingIOError:
        return None


class Killable(Protocol):
    """A child, or what stands for one."""

    @property
    def pid(self) -> int: ...

    @property
    def status(self) -> int | None: ...

    def kill(self) -> None: ...

    def end(self, seconds: float) -> None: ...


class AbandonedChildren:
    """Children that were killed and may not be dead yet."""

    def __init__(self) -> None:
        self._children: list[Killable] = []

    def __len__(self) -> int:
        return len(self._children)

    @property
    def pids(self) -> list[int]:
        return [child.pid for child in self._children]

    def leave(self, child: Killable) -> None:
        child.kill()
        self._children.append(child)

    def reap(self) -> None:
        if self._children:
            self._children = [child for child in self._children if child.status is None]

    def end(self, seconds: float) -> None:
        for child in self._children:
            child.end(seconds)


class Pauses:
    """When a child that failed may be started again: after pauses that double, from the first again
    after `settled_s` without a failure.
    """

    def __init__(
        self, first_s: float, longest_s: float, settled_s: float, *, is_first_free: bool = False
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._settled_s = settled_s
        self._is_first_free = is_first_free
        self._failures = 0
        self._failed_s = 0.0
        self._not_before_s = 0.0

    def is_over(self, now_s: float) -> bool:
        return now_s >= self._not_before_s

    def failed(self, now_s: float) -> None:
        self._failures = self._failures + 1 if now_s - self._failed_s < self._settled_s else 1
        self._failed_s = now_s
        doublings = self._failures - 1 - self._is_first_free
        pause_s = min(self._longest_s, self._first_s * 2.0 ** min(doublings, 30))
        self._not_before_s = now_s + (pause_s if doublings >= 0 else 0.0)


def _descriptor(stream: IO[bytes] | None) -> int:
    assert stream is not None, "it was started without this pipe"
    return stream.fileno()
