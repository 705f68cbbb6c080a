"""A recording in the making: a directory next to its place, locked, so that what a killed import
left is known and goes.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_SUFFIX: Final = ".importing"
_ATTEMPTS: Final = 10


@contextmanager
def unfinished(directory: Path) -> Iterator[Path]:
    """An empty directory that becomes `directory` at the end, or goes if there is an error."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_over(directory)
    made, lock = _make(directory)
    try:
        yield made
        made.rename(directory)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _make(directory: Path) -> tuple[Path, int | None]:
    """Again if another import took it for one left over, in the moment before it was locked."""
    for _ in range(_ATTEMPTS):
        made = Path(
            tempfile.mkdtemp(prefix=f".{directory.name}.", suffix=_SUFFIX, dir=directory.parent)
        )
        if os.name != "posix":
            return made, None
        lock = _locked(made)
        if lock is not None and made.exists():
            return made, lock
    raise OSError(0, "another import of the same name is at work", str(directory))


def _remove_left_over(directory: Path) -> None:
    """The lock of a process goes with it, however it ends: what nobody holds is nobody's."""
    if os.name != "posix":
        return
    for path in directory.parent.glob(f".{_literal(directory.name)}.*{_SUFFIX}"):
        lock = _locked(path)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _locked(path: Path) -> int | None:
    from necroscope.segment.lock import lock_directory  # noqa: PLC0415 - locks are Unix's

    try:
        return lock_directory(path)
    except OSError:
        return None


def _literal(name: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)
