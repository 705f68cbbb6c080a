"""A capture is imported by a process of its own while this one loads what answers: Python does one
of the two at a time, and each takes about as long as the other.

It has the limits of the process that reads (`reader_guard`) and ends with it. However it ends, this
process goes on, raises or ends in the same way.
"""

import contextlib
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from necroscope.cli.reader_guard import end_with_parent
from necroscope.model.unwanted_modules import leave_out

_Answer = TypeVar("_Answer")
# How it ends when its answer says how the import went.
_ANSWERED: Final = 0


def import_beside(work: Callable[[], _Answer], meanwhile: Callable[[], object]) -> _Answer:
    """What `work` returns or raises in the child, once `meanwhile` is done here."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        _work(work, into)
    os.close(into)
    try:
        with os.fdopen(out, "rb") as pipe:
            meanwhile()
            content = pipe.read()
    except BaseException:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        raise
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != _ANSWERED:
        _end_as_it_did(code)
    answer, error = pickle.loads(content)
    if error is not None:
        raise error
    return answer  # type: ignore[no-any-return]


def _work(work: Callable[[], _Answer], into: int) -> NoReturn:
    """In the child. Ctrl-C goes to both: the parent hears it, and ends this one."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end_with_parent()
        # It only writes, for which Arrow does not need it.
        leave_out("numpy")
        # The thread that reads calls C for parts of a millisecond: it would wait ten times as long
        # for the one that writes.
        sys.setswitchinterval(0.0003)
        answer: tuple[_Answer | None, Exception | None]
        try:
            answer = work(), None
        except Exception as error:  # noqa: BLE001 - raised in the parent
            answer = None, error
        with os.fdopen(into, "wb") as pipe:
            pickle.dump(answer, pipe)
        code = _ANSWERED
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - nobody above may go on with the parent's work
        traceback.print_exc()
    os._exit(code)


def _end_as_it_did(code: int) -> NoReturn:
    """A signal ends us too: who waits for us says what it means."""
    if code < 0:
        # SIGKILL cannot be caught, so there is nothing to set.
        with contextlib.suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(abs(code))
