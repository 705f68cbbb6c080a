"""A connection to a daemon with one deadline for everything said over it: a daemon that hangs costs
the deadline, no more.

The socket may lie below a host mount, whose path can be longer than the 107 bytes that sockaddr_un
holds, and on a node it may be a symlink (/var/run -> /run) that must not lead out of the mount: so
it is opened by openat2 below the root (O_PATH), and reached by /proc/self/fd.
"""

import errno
import os
import socket
import stat
import time
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.names import clean
from necroscope.symbols.target_files import open_root, resolve

_CHUNK_BYTES: Final = 1 << 16


class HungUp(SourceUnavailable):
    """The daemon was there, and ended the connection."""


class DaemonSocket:
    """Bytes to and from one daemon; every failure is a SourceUnavailable that names it."""

    def __init__(
        self, name: str, connection: socket.socket, timeout_s: float, limit_bytes: int
    ) -> None:
        self._name = name
        self._socket = connection
        self._left_bytes = limit_bytes
        self._deadline = 0.0
        self.set_deadline(timeout_s)

    @classmethod
    def connect_unix(
        cls, root: Path, path: str, timeout_s: float, limit_bytes: int
    ) -> "DaemonSocket":
        """A socket file of the node below `root`."""
        try:
            place = _open_socket_file(root, path)
        except OSError as error:
            raise _unavailable(path, error) from None
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            return cls._connect(path, connection, f"/proc/self/fd/{place}", timeout_s, limit_bytes)
        finally:
            os.close(place)

    @classmethod
    def connect_tcp(
        cls, host: str, port: int, timeout_s: float, limit_bytes: int
    ) -> "DaemonSocket":
        """`host` is an address: a name would be looked up, and a resolver has no deadline."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return cls._connect(
            f"{host}:{port}",
            socket.socket(family, socket.SOCK_STREAM),
            (host, port),
            timeout_s,
            limit_bytes,
        )

    @classmethod
    def _connect(
        cls,
        name: str,
        connection: socket.socket,
        address: str | tuple[str, int],
        timeout_s: float,
        limit_bytes: int,
    ) -> "DaemonSocket":
        try:
            connection.settimeout(timeout_s)
            connection.connect(address)
        except (OSError, ValueError) as error:
            connection.close()
            raise _unavailable(name, error) from None
        return cls(name, connection, timeout_s, limit_bytes)

    def set_deadline(self, timeout_s: float) -> None:
        """All that is said from now on must be over by then."""
        self._deadline = time.monotonic() + timeout_s

    def send(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._left_s())
            self._socket.sendall(data)
        except OSError as error:
            raise _unavailable(self._name, error) from None

    def receive(self) -> bytes:
        """The next bytes; empty when the daemon has closed."""
        try:
            self._socket.settimeout(self._left_s())
            data = self._socket.recv(_CHUNK_BYTES)
        except OSError as error:
            raise _unavailable(self._name, error) from None
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            raise SourceUnavailable(f"{clean(self._name)} sends more than is accepted")
        return data

    def allow_bytes(self, limit_bytes: int) -> None:
        """A connection that is kept is granted this much again for each question."""
        self._left_bytes = limit_bytes

    def close(self) -> None:
        self._socket.close()

    def _left_s(self) -> float:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


def is_there(root: Path, path: str) -> bool:
    """Whether the node has such a socket file; one that we may not reach counts as there."""
    try:
        os.close(_open_socket_file(root, path))
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _open_socket_file(root: Path, path: str) -> int:
    """An O_PATH descriptor of a socket file below the root."""
    root_descriptor = open_root(root)
    if root_descriptor is None:
        raise FileNotFoundError(errno.ENOENT, "the host root cannot be opened")
    try:
        place = resolve(root_descriptor, os.fsencode(path))
    finally:
        os.close(root_descriptor)
    if not stat.S_ISSOCK(os.fstat(place).st_mode):
        os.close(place)
        raise OSError(errno.ENOTSOCK, "is not a socket")
    return place


def _unavailable(name: str, error: Exception) -> SourceUnavailable:
    name = clean(name)
    if isinstance(error, BrokenPipeError | ConnectionResetError):
        return HungUp(f"{name}: {error.strerror}")
    if isinstance(error, TimeoutError):
        return SourceUnavailable(f"{name} did not answer in time")
    if isinstance(error, PermissionError):
        return SourceUnavailable(
            f"{name} refuses the recorder: {error.strerror}",
            "run as root, or see docs/privileges.md",
        )
    if isinstance(error, OSError) and error.strerror:
        return SourceUnavailable(f"{name}: {error.strerror}")
    return SourceUnavailable(f"{name}: {clean(str(error))}")
