"""A lake's files on a directory, and the verbs that an object store has too. A put is whole and
durable, or it was not.

pyarrow.fs writes local files without fsync, so this is code of our own.
"""

import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

from pyarrow import fs

from necroscope.errors import NecroscopeError
from necroscope.segment.checksum import sync_directory

# A put that has not ended after an hour was killed.
_LEFTOVER_AGE_S: Final = 3600


class LakeError(NecroscopeError):
    """The lake cannot be read or written now; nothing of what was asked is certain to be there."""


class NotInLake(LakeError):  # noqa: N818 - the name says the fact
    """Another collector has merged or removed it, or it never was there."""


class Files(Protocol):
    """Paths are relative, with '/'. `filesystem` and `place` are what pyarrow's readers want."""

    filesystem: fs.FileSystem

    def place(self, path: str) -> str: ...
    def put(self, path: str, data: bytes) -> None: ...
    def read(self, path: str) -> bytes: ...
    def paths(self, prefix: str) -> list[str]: ...
    def directories(self, prefix: str) -> list[str]: ...
    def delete(self, path: str) -> None: ...
    def space_bytes(self) -> tuple[int, int] | None: ...
    def remove_leftovers(self) -> None: ...


class DirectoryFiles:
    """Files under `root`; names that begin with a dot are puts that have not ended."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.filesystem = fs.LocalFileSystem()

    def place(self, path: str) -> str:
        return str(self.root / path)

    def put(self, path: str, data: bytes) -> None:
        """fsync before the rename, so that the name never stands for less than the data; then fsync
        of the name.
        """
        target = self.root / path
        temporary = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
        self._make_directory(target.parent)
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except OSError:
            # What was written of it takes space that a full disk needs.
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        sync_directory(target.parent)

    def _make_directory(self, directory: Path) -> None:
        if not directory.is_dir():
            if directory != self.root:
                self._make_directory(directory.parent)
            directory.mkdir(mode=0o700, parents=directory == self.root, exist_ok=True)
            sync_directory(directory.parent)

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def paths(self, prefix: str) -> list[str]:
        found = []
        for directory, _, names in os.walk(self.root / prefix, onerror=_raise_unless_missing):
            base = Path(directory).relative_to(self.root).as_posix()
            found += [
                f"{base}/{name}".removeprefix("./") for name in names if not name.startswith(".")
            ]
        return sorted(found)

    def directories(self, prefix: str) -> list[str]:
        try:
            with os.scandir(self.root / prefix) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except FileNotFoundError:
            return []

    def delete(self, path: str) -> None:
        (self.root / path).unlink(missing_ok=True)

    def space_bytes(self) -> tuple[int, int] | None:
        """Free, and in all."""
        there = next(path for path in (self.root, *self.root.parents) if path.exists())
        usage = shutil.disk_usage(there)
        return usage.free, usage.total

    def remove_leftovers(self) -> None:
        before = time.time() - _LEFTOVER_AGE_S
        for directory, _, names in os.walk(self.root):
            for path in (
                Path(directory) / name
                for name in names
                if name.startswith(".") and name.endswith(".tmp")
            ):
                with contextlib.suppress(OSError):
                    if path.stat().st_mtime < before:
                        path.unlink()


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
