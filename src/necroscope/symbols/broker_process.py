"""The process that has CAP_SYS_PTRACE in the recorder's place: it starts the children that need it,
and reads of other processes what only it may. Standard library only.

An attacker that takes the recorder over can ask for what was allowed at its start, and for nothing
else: `started_programs` are command lines of which only the last words are open, and below /proc
four kernel-made files and the numbers of a process's sockets can be had. Everything here is decided
by comparing words.

A child is made by clone(CLONE_PARENT), so that it is the recorder's own: the recorder waits for it
and ends it as if it had started it. Nothing here waits for a child or opens a stranger's file.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

from necroscope.model import capabilities
from necroscope.model.library_pages import release_library_pages
from necroscope.perf_abi.syscalls import syscall

TYPE_CHECKING = False  # `typing` would take 2 MB of the broker, which lives as long as the recorder
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

START, READ, OPEN_ROOT, SOCKETS = b"start", b"read", b"open-root", b"sockets"
MESSAGE_BYTES: Final = 1 << 15
FILE_BYTES: Final = 8192
# What its children can use: sight, and for who runs it as root also what py-spy takes to enter a
# container's file system.
_KEPT: Final = {
    capabilities.SYS_PTRACE,
    capabilities.DAC_READ_SEARCH,
    capabilities.CHECKPOINT_RESTORE,
    capabilities.SYS_ADMIN,
    capabilities.SYS_CHROOT,
}
_CLONE_PARENT: Final = 0x8000
_READ_FILES: Final = (b"syscall", b"stack", b"wchan", b"stat")
_MOST_WORDS: Final = 64
_DESCRIPTORS: Final = 1_024
_SOCKET: Final = b"socket:["
# Between the words of a command line of ours.
WORD_END: Final = "\x1f"


def main() -> None:
    """Words: a descriptor of a socket, the root directory of the node, the allowed commands."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    broker = BrokerProcess(
        os.fsencode(sys.argv[2]), [os.fsencode(one).split(b"\x1f") for one in sys.argv[3:]]
    )
    held = capabilities.held()
    is_blind = capabilities.DAC_READ_SEARCH not in held
    capabilities.keep(_KEPT | ({capabilities.DAC_OVERRIDE} if is_blind else set()))
    capabilities.hand_on()
    release_library_pages()
    while True:
        message, descriptors, _, _ = socket.recv_fds(
            connection, MESSAGE_BYTES, 3, socket.MSG_CMSG_CLOEXEC
        )
        if not message:  # the recorder has ended
            return
        number, *words = message.split(b"\0")
        given: list[int] = []
        try:
            answer, given = broker.answer(words, descriptors)
            code = 0
        except OSError as error:
            answer, code = b"", error.errno or 5
        reply = b"%s\0%d\0%s" % (number, code, answer)
        # A list of no descriptors is not a valid one.
        socket.send_fds(connection, [reply], given) if given else connection.send(reply)
        for descriptor in (*descriptors, *given):
            os.close(descriptor)


class BrokerProcess:
    """`allowed` are commands; the first word of each says what may follow its words."""

    def __init__(self, root: bytes, allowed: Sequence[Sequence[bytes]]) -> None:
        self._proc = os.path.join(root, b"proc")
        self._allowed = allowed

    def answer(self, words: Sequence[bytes], descriptors: Sequence[int]) -> tuple[bytes, list[int]]:
        """Bytes and descriptors; PermissionError for what is not allowed."""
        kind, *arguments = words
        if kind == START and len(descriptors) == 3 and self._may_start(arguments):
            return b"%d" % _start(arguments, descriptors), []
        if kind == SOCKETS and len(arguments) == 1 and arguments[0].isdigit():
            return read_sockets(os.path.join(self._proc, arguments[0])), []
        if kind in (READ, OPEN_ROOT) and len(arguments) == 2 and arguments[0].isdigit():
            folder = os.path.join(self._proc, arguments[0])
            if kind == READ and arguments[1] in _READ_FILES:
                return _read(os.path.join(folder, arguments[1])), []
            if kind == OPEN_ROOT and arguments[1] == b"root":
                return b"", [os.open(os.path.join(folder, b"root"), os.O_PATH | os.O_DIRECTORY)]
        raise PermissionError(1, "not allowed")

    def _may_start(self, words: list[bytes]) -> bool:
        return any(
            words[: len(command)] == list(command) and _may_follow(kind, words[len(command) :])
            for kind, *command in self._allowed
        )


def _may_follow(kind: bytes, words: list[bytes]) -> bool:
    if kind == b"number":
        return len(words) == 1 and words[0].isdigit()
    if kind == b"stages":
        options, stages = words[::2], words[1::2]
        is_even = len(options) == len(stages) <= _MOST_WORDS
        return is_even and set(options) <= {b"--skip"} and all(map(bytes.isalpha, stages))
    return not words


def _start(words: Sequence[bytes], descriptors: Sequence[int]) -> int:
    pid = syscall("clone", _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        try:
            os.setpgid(0, 0)
            # Python ignores it, and programs inherit that.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
            os.execv(words[0], list(words))
        finally:
            os._exit(127)
    return pid


def read_sockets(folder: bytes) -> bytes:
    """The inodes of the sockets that the process of a directory of /proc holds, with blanks between
    them; without those that are gone by now.
    """
    path = os.path.join(folder, b"fd")
    found: list[bytes] = []
    for name in os.listdir(path)[:_DESCRIPTORS]:
        try:
            target = os.readlink(os.path.join(path, name))
        except OSError:
            continue
        if target.startswith(_SOCKET):
            found.append(target[len(_SOCKET) : -1])
    return b" ".join(found)[:FILE_BYTES]


def _read(path: bytes) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, FILE_BYTES)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main()
