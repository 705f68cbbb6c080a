"""A process that works for this one: forked, so that all is loaded already, with a pipe each way."""

import contextlib
import os
import pickle
import signal
import threading
from collections.abc import Callable
from typing import Any, BinaryIO, ClassVar, Final, NoReturn, Self

# To start a process takes as long as to read a small capture.
WORTHWHILE_BYTES: Final = 4 << 20


class Forked:
    """Messages are objects of ours. Closing the pipe ends the process, and so does our own end, whatever it be."""

    _living: ClassVar[list["Forked"]] = []

    def __init__(self, pid: int, outgoing: BinaryIO, incoming: BinaryIO) -> None:
        self._pid = pid
        self._outgoing = outgoing
        self._incoming = incoming

    @classmethod
    def start(cls, serve: Callable[["Messages"], None]) -> Self | None:
        """None in the midst of threads, where a fork may hang, and on systems that have no fork."""
        if threading.active_count() > 1 or not hasattr(os, "fork"):
            return None
        for_child, outgoing = os.pipe()
        incoming, for_parent = os.pipe()
        pid = os.fork()
        if not pid:
            cls._become(serve, for_child, for_parent, [outgoing, incoming])
        os.close(for_child)
        os.close(for_parent)
        started = cls(pid, os.fdopen(outgoing, "wb"), os.fdopen(incoming, "rb"))
        cls._living.append(started)
        return started

    @classmethod
    def _become(cls, serve: Callable[["Messages"], None], incoming: int, outgoing: int, not_ours: list[int]) -> NoReturn:
        """Ctrl-C is for whoever asks. A pipe to another of these would never end if this process held it open too."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            for descriptor in [*not_ours, *(each for other in cls._living for each in other.descriptors())]:
                os.close(descriptor)
            serve(Messages(os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")))
        finally:
            os._exit(0)

    @property
    def pid(self) -> int:
        return self._pid

    def send(self, message: object) -> None:
        """BrokenPipeError if the process is gone."""
        pickle.dump(message, self._outgoing, pickle.HIGHEST_PROTOCOL)
        self._outgoing.flush()

    def receive(self) -> Any:
        """EOFError if the process is gone."""
        try:
            return pickle.load(self._incoming)
        except pickle.UnpicklingError:  # it ended within its answer
            raise EOFError from None

    def close(self) -> None:
        """Returns when the process has ended."""
        if self not in self._living:
            return
        self._living.remove(self)
        for pipe in (self._outgoing, self._incoming):
            with contextlib.suppress(OSError):
                pipe.close()
        os.waitpid(self._pid, 0)

    def descriptors(self) -> list[int]:
        return [self._outgoing.fileno(), self._incoming.fileno()]


class Messages:
    """The other side of the pipes."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def receive(self) -> Any:
        """EOFError when there is nobody who asks."""
        return pickle.load(self._incoming)

    def send(self, message: object) -> None:
        pickle.dump(message, self._outgoing, pickle.HIGHEST_PROTOCOL)
        self._outgoing.flush()
