"""A kernel file read again and again: one descriptor kept open, read from offset 0, reopened
when it breaks.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from necroscope.errors import SourceUnavailable
from necroscope.model.names import LINE_LIMIT, clean

Parsed = TypeVar("Parsed")

# A sequence file hands out at most a few pages a call whatever is asked; this holds most files in
# one call.
_CHUNK_BYTES: Final = 1 << 16
_LEAST_PAGE_BYTES: Final = 4096
_REFUSED: Final = (errno.EACCES, errno.EPERM)
_ABSENT: Final = (errno.ENOENT, errno.ENOTDIR, errno.EOPNOTSUPP)


def unavailable(path: Path, error: OSError) -> SourceUnavailable:
    """The error of a kernel file that cannot be read: what it is, and the way out."""
    facts = f"cannot read {clean(str(path), LINE_LIMIT)}: {error.strerror}"
    if error.errno in _REFUSED:
        return SourceUnavailable(facts, "run as root")
    if error.errno in _ABSENT:
        return SourceUnavailable(
            facts, "this kernel lacks it, or --host-root does not lead to the node's /proc and /sys"
        )
    return SourceUnavailable(facts)


def read_once(path: str | bytes) -> bytes | None:
    """One read of a small file that is not worth a descriptor of its own; None if it cannot be
    read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, _CHUNK_BYTES)
    except OSError:
        return None
    finally:
        os.close(fd)


class KeptFile:
    """Opened at the first read. The path is not followed again: a file replaced by another of its
    name is not noticed.
    """

    __slots__ = ("_fd", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    @property
    def descriptor(self) -> int:
        """-1 while it is not open; another one after a read that failed."""
        return self._fd

    def read(self, longest_record_bytes: int = _LEAST_PAGE_BYTES) -> bytes:
        """The whole file, in as many calls as it takes.

        The kernel fills a page until the next record does not fit (seq_read_iter): where a record
        of `longest_record_bytes` would have fitted, there is none, and no call is made to learn
        that.
        """
        data = chunk = self._read_first()
        while len(chunk) > _LEAST_PAGE_BYTES - longest_record_bytes:
            chunk = self._pread(len(data))
            data += chunk
        return data

    def read_record(self) -> bytes:
        """All of a file that the kernel writes as a single record (/proc/stat, meminfo, softirqs,
        pressure, schedstat, sysctls).

        One call, unless it is filled to the brim: the kernel keeps the rest of that record for the
        next (seq_read_iter).
        """
        try:
            data = os.pread(self._fd, _CHUNK_BYTES, 0)
        except OSError:
            data = self._read_first()
        chunk = data
        while len(chunk) == _CHUNK_BYTES:
            chunk = self._pread(len(data))
            data += chunk
        return data

    def parse(
        self,
        parse: Callable[[bytes], Parsed],
        *,
        record: bool = False,
        longest_record_bytes: int = _LEAST_PAGE_BYTES,
    ) -> Parsed:
        """What `parse` makes of the file; text that it does not know (ValueError) is an interface
        that is not there.
        """
        data = self.read_record() if record else self.read(longest_record_bytes)
        try:
            return parse(data)
        except (ValueError, IndexError) as error:
            facts = (
                f"{clean(str(self.path), LINE_LIMIT)} is not in a known format: {clean(str(error))}"
            )
            raise SourceUnavailable(facts, "keep the file's text and report it") from None

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _read_first(self) -> bytes:
        try:
            return os.pread(self._fd, _CHUNK_BYTES, 0)
        except OSError:  # also where it is not open yet
            self.close()
        self._open()
        return self._pread(0)

    def _open(self) -> None:
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise unavailable(self.path, error) from None

    def _pread(self, offset: int) -> bytes:
        try:
            return os.pread(self._fd, _CHUNK_BYTES, offset)
        except OSError as error:
            self.close()
            raise unavailable(self.path, error) from None
