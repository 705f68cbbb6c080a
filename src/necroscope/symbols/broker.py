"""The recorder's side of the process that has CAP_SYS_PTRACE in its place (`broker_process.py`).
Standard library only.

The recorder starts it first, then gives the capability up for good. Should that process end, none
can be started again: then names, facts and Python stacks stay unknown until the recorder is started
again, and it says so.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Final

from necroscope.model.child import Child
from necroscope.symbols.broker_process import (
    FILE_BYTES,
    MESSAGE_BYTES,
    OPEN_ROOT,
    READ,
    SOCKETS,
    START,
    WORD_END,
)

# It answers in a fraction of a millisecond; on a starving node it may have to wait for a core.
_TIMEOUT_S: Final = 1.0
_FIRST_USE_S: Final = 5.0
_END_S: Final = 1.0
_POLL_S: Final = 0.02
_REPLY_BYTES: Final = FILE_BYTES + 64
ENDED: Final = (
    "the process that starts the recorder's helpers has ended: functions of programs have no names"
    " until the recorder is started again"
)


class Broker:
    """`allowed` are the command lines that it starts, each with what may follow: `nothing`, a
    `number`, or `stages` of facts to skip. May be asked by any thread.
    """

    def __init__(self, root: Path, allowed: Iterable[tuple[str, Sequence[str]]]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._child = Child(
                [
                    *(sys.executable, "-P", "-m", "necroscope.symbols.broker_process"),
                    *(str(theirs.fileno()), str(root)),
                    *(WORD_END.join((kind, *command)) for kind, command in allowed),
                ],
                directory="/",
                pass_fds=(theirs.fileno(),),
            )
        self._lock = threading.Lock()
        self._timeout_s = _FIRST_USE_S
        self._sequence = 0
        # Questions whose answers came too late: a child that they started has no owner.
        self._given_up: dict[int, bytes] = {}
        self._strays: list[AdoptedProcess] = []

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def has_ended(self) -> bool:
        return self._child.status is not None

    def start(
        self, command: Sequence[str], *, stdin: int, stdout: int, stderr: int, **_: object
    ) -> "AdoptedProcess":
        """As subprocess.Popen starts it, but below the node's root directory and with the
        capability. A program that cannot be run ends with status 127.
        """
        ours: list[IO[bytes] | None] = []
        theirs: list[int] = []
        try:
            for number, wanted in enumerate((stdin, stdout, stderr)):
                pipe, end = _ends(wanted, is_input=number == 0)
                ours.append(pipe)
                theirs.append(end)
            pid = int(self._ask([START, *map(os.fsencode, command)], theirs)[0])
        except OSError:
            for opened in ours:
                if opened is not None:
                    opened.close()
            raise
        finally:
            for end in theirs:
                os.close(end)
        return AdoptedProcess(pid, *ours)

    def read(self, pid: int, name: str) -> bytes:
        """/proc/PID/syscall, stack, wchan or stat: the first 8 KiB."""
        return self._ask([READ, b"%d" % pid, name.encode()])[0]

    def sockets(self, pid: int) -> bytes:
        """The inodes of the sockets that a process holds, with blanks between them."""
        return self._ask([SOCKETS, b"%d" % pid])[0]

    def open_root(self, pid: int) -> int:
        """A descriptor of the root directory of a process: it leads to files, not to memory."""
        return self._ask([OPEN_ROOT, b"%d" % pid, b"root"])[1][0]

    def close(self) -> None:
        self._socket.close()
        self._child.end(_END_S)
        for stray in self._strays:
            stray.poll()

    def _ask(
        self, words: Sequence[bytes], descriptors: Sequence[int] = ()
    ) -> tuple[bytes, list[int]]:
        """OSError for what is refused, and if no answer comes in time."""
        if not self._lock.acquire(timeout=self._timeout_s):
            raise TimeoutError(110, "the process that starts helpers does not answer")
        try:
            self._sequence += 1
            message = b"\0".join((b"%d" % self._sequence, *words))
            if len(message) > MESSAGE_BYTES:
                raise OSError(7, os.strerror(7))
            self._socket.settimeout(self._timeout_s)
            if descriptors:
                socket.send_fds(self._socket, [message], descriptors)
            else:
                self._socket.send(message)
            try:
                return self._answer()
            except TimeoutError:
                self._given_up[self._sequence] = words[0]
                raise
        finally:
            self._lock.release()

    def _answer(self) -> tuple[bytes, list[int]]:
        until_s = time.monotonic() + self._timeout_s
        while True:
            self._socket.settimeout(max(0.001, until_s - time.monotonic()))
            reply, descriptors, _, _ = socket.recv_fds(
                self._socket, _REPLY_BYTES, 1, socket.MSG_CMSG_CLOEXEC
            )
            if not reply:
                raise BrokenPipeError(32, ENDED)
            number, code, content = reply.split(b"\0", 2)
            self._timeout_s = _TIMEOUT_S
            if int(number) == self._sequence:
                if int(code):
                    raise OSError(int(code), os.strerror(int(code)))
                return content, descriptors
            self._forget(self._given_up.pop(int(number), b""), int(code), content, descriptors)

    def _forget(self, kind: bytes, code: int, content: bytes, descriptors: list[int]) -> None:
        for descriptor in descriptors:
            os.close(descriptor)
        if kind == START and code == 0:
            stray = AdoptedProcess(int(content))
            stray.kill()
            self._strays = [one for one in (*self._strays, stray) if one.poll() is None]


class AdoptedProcess:
    """A child of ours that another process started: what subprocess.Popen is for one of our own."""

    def __init__(
        self,
        pid: int,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        stderr: IO[bytes] | None = None,
    ) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self._status: int | None = None

    def poll(self) -> int | None:
        if self._status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # who started us leaves no zombies: it is gone
                pid, status = self.pid, 0
            if pid == self.pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def wait(self, timeout: float) -> int:
        until_s = time.monotonic() + timeout
        while (status := self.poll()) is None:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(min(_POLL_S, left_s))
        return status

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _ends(wanted: int, *, is_input: bool) -> tuple[IO[bytes] | None, int]:
    """Our end of a pipe, if one is wanted, and the child's."""
    if wanted != subprocess.PIPE:
        return None, os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    reading, writing = os.pipe()
    ours, theirs = (writing, reading) if is_input else (reading, writing)
    return open(ours, "wb" if is_input else "rb", buffering=0), theirs
