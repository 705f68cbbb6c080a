"""Real waits of a known length and kind, made by processes of our own: for a core, in the kernel, for
a lock of user space or on a file, and for who should read a pipe.
"""

import ctypes
import fcntl
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from necroscope.perf_abi.syscalls import syscall

_CLONE_VFORK = 0x4000
_LIBC = ctypes.CDLL(None, use_errno=True)


def wait_for_a_core(cpu: int, seconds: float) -> int:
    """A task that sleeps for moments is woken on a core that a FIFO task keeps; its pid."""
    ready, started = os.pipe()
    waiter = os.fork()
    if waiter == 0:
        os.sched_setaffinity(0, {cpu})
        os.write(started, b"x")
        while True:
            time.sleep(0.001)
    os.read(ready, 1)
    hog = os.fork()
    if hog == 0:
        os.sched_setaffinity(0, {cpu})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass
        os._exit(0)
    os.waitpid(hog, 0)
    time.sleep(0.01)  # it gets its turn
    os.kill(waiter, signal.SIGKILL)
    os.waitpid(waiter, 0)
    for descriptor in (ready, started):
        os.close(descriptor)
    return waiter


def sleep_in_the_kernel(seconds: float) -> int:
    """The parent of a vfork sleeps uninterruptibly until its child ends; its pid."""
    waiter = os.fork()
    if waiter == 0:
        if syscall("clone", _CLONE_VFORK | signal.SIGCHLD, 0, 0, 0, 0) == 0:
            time.sleep(seconds)
        os._exit(0)
    os.waitpid(waiter, 0)
    return waiter


@contextmanager
def sleeping_in_the_kernel() -> Iterator[int]:
    """The pid of one that sleeps uninterruptibly as long as this lasts."""
    waits, ends = os.pipe()
    waiter = os.fork()
    if waiter == 0:
        os.close(ends)
        if syscall("clone", _CLONE_VFORK | signal.SIGCHLD, 0, 0, 0, 0) == 0:
            os.read(waits, 1)
        os._exit(0)
    os.close(waits)
    try:
        # Its state says D a moment before it leaves the core; `wchan` is 0 until it has left.
        wait_channel = Path(f"/proc/{waiter}/wchan")
        until = time.monotonic() + 10
        while wait_channel.read_text() == "0" and time.monotonic() < until:
            os.sched_yield()
        yield waiter
    finally:
        os.close(ends)
        os.waitpid(waiter, 0)


@contextmanager
def keeping_a_rhythm(period_s: float) -> Iterator[int]:
    """The pid of one that does nothing but sleep for this long, again and again, however busy the
    machine is.
    """
    waiter = os.fork()
    if waiter == 0:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        while True:
            time.sleep(period_s)
    try:
        yield waiter
    finally:
        os.kill(waiter, signal.SIGKILL)
        os.waitpid(waiter, 0)


def wait_for_a_lock(seconds: float) -> int:
    """A thread that wants a mutex which another holds; its tid."""
    mutex = ctypes.create_string_buffer(64)
    held, waiter = threading.Event(), []

    def hold() -> None:
        _LIBC.pthread_mutex_lock(mutex)
        held.set()
        time.sleep(seconds)
        _LIBC.pthread_mutex_unlock(mutex)

    def want() -> None:
        held.wait()
        waiter.append(threading.get_native_id())
        _LIBC.pthread_mutex_lock(mutex)
        _LIBC.pthread_mutex_unlock(mutex)

    threads = [threading.Thread(target=part) for part in (hold, want)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return waiter[0]


def wait_for_a_file_lock(seconds: float) -> int:
    """A process that wants a lock on a file which this one has; its pid."""
    with tempfile.TemporaryFile() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiter = os.fork()
        if waiter == 0:
            own = os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDWR)
            fcntl.flock(own, fcntl.LOCK_EX)
            os._exit(0)
        time.sleep(seconds)
        fcntl.flock(file, fcntl.LOCK_UN)
        os.waitpid(waiter, 0)
    return waiter


def wait_for_a_reader(seconds: float) -> int:
    """A process that writes into a pipe which this one does not read for this long; its pid."""
    end, begin = os.pipe()
    waiter = os.fork()
    if waiter == 0:
        os.close(end)
        os.write(begin, bytes(1 << 17))
        os._exit(0)
    os.close(begin)
    time.sleep(seconds)
    while os.read(end, 1 << 17):
        pass
    os.close(end)
    os.waitpid(waiter, 0)
    return waiter


INJECTIONS: dict[str, Callable[[float], int]] = {
    "runnable": lambda seconds: wait_for_a_core(max(os.sched_getaffinity(0)), seconds),
    "blocked": sleep_in_the_kernel,
    "futex": wait_for_a_lock,
    "file_lock": wait_for_a_file_lock,
    "unread": wait_for_a_reader,
}
