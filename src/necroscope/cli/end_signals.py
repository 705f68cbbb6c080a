"""Waiting that ends with a signal, or with the process that started us."""

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType

# Sleeps for these seconds; True when it is time to end.
IsOver = Callable[[float], bool]


def ending_signals() -> list[int]:
    """SIGHUP stays ignored if we were started so, by nohup. SIGINT does not: a script's shell
    ignores it for what it starts in the background, and the script then ends it with `kill -INT`.
    """
    is_nohup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [signal.SIGTERM, signal.SIGINT, *([] if is_nohup else [signal.SIGHUP])]


@contextlib.contextmanager
def until_end_signal(*, while_stdin: bool) -> Iterator[IsOver]:
    """A function that sleeps, and is True once a signal has come, or our parent process has gone.

    Our parent gets the same signal (Ctrl-C goes to all, systemd's too) and ends us after
    itself.
    """
    read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def stop(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        os.write(write_end, b"x")

    handler = signal.SIG_IGN if while_stdin else stop
    before = {number: signal.signal(number, handler) for number in ending_signals()}
    watched = [read_end, *([sys.stdin.fileno()] if while_stdin else [])]

    def is_over(seconds: float) -> bool:
        return bool(select.select(watched, [], [], seconds)[0])

    try:
        yield is_over
    finally:
        for number, known in before.items():
            signal.signal(number, known)
        os.close(read_end)
        os.close(write_end)
