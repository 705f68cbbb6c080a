"""Exclusive use of a recording or of a segment: flock(2), which the kernel lets go of when its
holder dies, however it dies.
"""

import contextlib
import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from necroscope.errors import RecordingBusy, RecordingError

LOCK_FILE: Final = "recorder.lock"
_TRIES: Final = 5
_TRY_AGAIN_S: Final = 0.05


class RecordingLock:
    """Held by the one recorder of a recording; the file tells others its pid."""

    def __init__(self, directory: Path) -> None:
        try:
            self._descriptor = os.open(
                directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600
            )
        except OSError as error:
            raise RecordingError(
                f"cannot lock {directory}: {error.strerror}", "choose a directory you may write to"
            ) from None
        try:
            take_lock(self._descriptor)
        except OSError:
            holder = os.read(self._descriptor, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            hint = "stop it, or record to another directory with --dir"
            raise RecordingBusy(
                f"another recorder (pid {holder}) writes to {directory}", hint
            ) from None
        with contextlib.suppress(
            OSError
        ):  # the pid is for others to read; the lock holds without it, also on a full disk
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def is_recorded(directory: Path) -> bool:
    """Whether a recorder holds the recording now, whatever its clock and its segments say."""
    return is_locked(directory / LOCK_FILE)


def is_locked(path: Path) -> bool:
    """False also where that cannot be found out."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def take_lock(descriptor: int) -> None:
    """A reader that asks whether the lock is held holds it itself for a moment."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(_TRY_AGAIN_S)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_directory(path: Path) -> int | None:
    """A descriptor that holds the lock of a directory while it is open; None if another process
    holds it.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
