"""One lookup process as the recorder sees it: two pipes and what was asked of it. Standard library
only.
"""

import os
import select
import sys
from collections import deque
from collections.abc import Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from necroscope.model.child import Child, Start, start_process
from necroscope.symbols.messages import READY, FrameError, FrameReader, RequestKind, pack

_READ_BYTES: Final = 1 << 16


class ChildGone(Exception):  # noqa: N818
    """The lookup process ended, or speaks nonsense."""


class LookupQuestion(NamedTuple):
    """An item that was asked and not answered yet; `blames` are the targets that are at fault if no
    answer comes.
    """

    sequence: int
    kind: RequestKind
    blames: tuple[Hashable, ...]


def command(root: Path) -> list[str]:
    # -P: the directory the recorder was started in must not lend us modules.
    return [sys.executable, "-P", "-m", "necroscope.symbols.lookup_process", str(root)]


class LookupChild(Child):
    """A child that does not read or write must not stop the recorder."""

    def __init__(self, arguments: Sequence[str], start: Start = start_process) -> None:
        super().__init__(arguments, stdin=True, stdout=True, directory="/", start=start)
        self._requests, self._answers = self.stdin, self.stdout
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self._unsent = bytearray()
        self._reader = FrameReader()
        self.questions: deque[LookupQuestion] = deque()
        self.is_ready = False

    def ask(
        self,
        sequence: int,
        kind: RequestKind,
        items: Sequence[Any],
        blames: Sequence[tuple[Hashable, ...]],
    ) -> None:
        self._unsent += pack((sequence, int(kind), list(items)))
        self.questions += [LookupQuestion(sequence, kind, targets) for targets in blames]
        self._write()

    def receive(self, timeout_s: float) -> list[tuple[int, Any]]:
        """Answers that come within the time, as (sequence, result); empty if none does."""
        for descriptor, _ in self._poll.poll(max(timeout_s, 0) * 1000):
            if descriptor == self._requests:
                self._write()
            else:
                return self._read()
        return []

    def _write(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._requests, self._unsent)]
        except BlockingIOError:
            self._poll.register(self._requests, select.POLLOUT)
            return
        except OSError as error:
            raise ChildGone(str(error)) from None
        with suppress(KeyError):
            self._poll.unregister(self._requests)

    def _read(self) -> list[tuple[int, Any]]:
        try:
            content = os.read(self._answers, _READ_BYTES)
            messages = self._reader.feed(content)
        except (OSError, ValueError, EOFError, TypeError, FrameError) as error:
            raise ChildGone(str(error)) from None
        if not content:
            raise ChildGone("it closed its pipe")
        return [(sequence, result) for sequence, result in messages if self._take(sequence)]

    def _take(self, sequence: int) -> bool:
        """Keep what is about the child itself; the rest answers questions."""
        if sequence == READY:
            self.is_ready = True
            return False
        if self.questions:
            self.questions.popleft()
        return True
