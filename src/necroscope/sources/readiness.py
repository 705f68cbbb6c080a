"""One descriptor that is readable when any of those watched is: an epoll instance of a source."""

import contextlib
import select


class Readiness:
    def __init__(self) -> None:
        self._poll = select.epoll()

    def fileno(self) -> int:
        return self._poll.fileno()

    def watch(self, descriptor: int) -> None:
        """Again if need be: a number may belong to another file since it was last watched."""
        self.forget(descriptor)
        self._poll.register(descriptor, select.EPOLLIN)

    def forget(self, descriptor: int) -> None:
        with contextlib.suppress(OSError):
            self._poll.unregister(descriptor)

    def hung_up(self) -> list[int]:
        """Those that will never have anything to read again."""
        endings = select.EPOLLHUP | select.EPOLLERR
        return [descriptor for descriptor, events in self._poll.poll(0) if events & endings]

    def close(self) -> None:
        self._poll.close()
