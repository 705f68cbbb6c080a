"""A recording is read in a process of its own: its author may have made it to crash its reader.

`segment` refuses the lies that are known before Arrow reads a table. This is for those that are
not: an abort in C++ cannot be caught from inside, nor can the kernel's OOM killer. So the commands
that read recordings fork before anything is imported: the child reads, within a limit on its
memory; the parent waits, passes signals on, and says how the child ended.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import threading
from typing import Final

from necroscope.cli.reader_memory import memory_limit_bytes
from necroscope.errors import CorruptData

# A thread's whole stack counts as memory, by default 8 MiB: a server has 40 threads, Arrow one for
# each core.
_STACK_BYTES: Final = 1 << 20
_MOST_ARROW_THREADS: Final = 16
_PR_SET_PDEATHSIG: Final = 1
_SI_KERNEL: Final = 0x80
_PASSED_ON: Final = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
# How a reader ends that the file it reads has brought down, or the kernel's OOM killer.
_BROUGHT_DOWN: Final = {
    signal.SIGABRT,
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGKILL,
}


_guarded: set[int] = set()


def is_guarded() -> bool:
    """Whether this process only reads, and its end is somebody's to report."""
    return os.getpid() in _guarded


def end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def guard() -> None:
    """Returns in the child. The parent exits as the child did; CorruptData if it was brought
    down.
    """
    limit_bytes = memory_limit_bytes()
    # Where it is ignored, by what started us, the kernel would not report the child's end.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    waited_for = _PASSED_ON | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    pid = os.fork()
    if pid == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _guarded.add(os.getpid())
        _confine(limit_bytes)
        return
    status = _wait(pid, waited_for)
    if status >= 0:
        sys.exit(status)
    if -status in _BROUGHT_DOWN:
        name = signal.Signals(-status).name
        raise CorruptData(
            f"the process that read this recording was ended by {name}: a file in it is damaged,"
            " or made to do that",
            "copy the recording and remove its segments one by one: `necroscope info DIR` reads"
            " what is left",
        )
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    # Process 1 of a container outlives that.
    sys.exit(128 - status)


def _wait(pid: int, waited_for: set[signal.Signals]) -> int:
    """Its exit code, or minus the signal that ended it."""
    while True:
        came = signal.sigwaitinfo(waited_for)
        if came.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended == pid:
                return os.waitstatus_to_exitcode(status)
        # A terminal sends its signals to both of us.
        elif came.si_code != _SI_KERNEL:
            os.kill(pid, came.si_signo)


def _confine(limit_bytes: int) -> None:
    end_with_parent()
    for kind, wanted in ((resource.RLIMIT_DATA, limit_bytes), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(kind)
        with contextlib.suppress(ValueError, OSError):
            within = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(kind, (within, hard))
    # mimalloc takes address space by the gigabyte, which counts.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    threading.stack_size(_STACK_BYTES)
    threads = min(_MOST_ARROW_THREADS, len(os.sched_getaffinity(0)))
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    with contextlib.suppress(OSError, AttributeError):
        # libstdc++ says what was thrown before it ends; the parent says it better.
        library = ctypes.CDLL("libstdc++.so.6")
        set_terminate = getattr(library, "_ZSt13set_terminatePFvvE")  # noqa: B009 - a mangled name
        set_terminate(ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p))
