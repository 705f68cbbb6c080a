"""Who names the addresses of a capture: for a large one a process of its own, so that symbols are read while samples are."""

import contextlib
import os
import pickle
import signal
import threading
from collections import deque
from typing import BinaryIO, Final, NamedTuple, NoReturn

from necroscope.errors import NecroscopeError
from necroscope.interchange.perf_data.frame_names import FrameNames, Question
from necroscope.model.frame import Frame

# To start a process takes as long as to name the functions of a small capture.
_LARGE_BYTES: Final = 4 << 20


class _Answer(NamedTuple):
    """Frames that differ, and which of them each is: many addresses are of one function."""

    different: list[Frame]
    places: list[int]
    why_kernel_unnamed: str


class _Child(NamedTuple):
    pid: int
    questions: BinaryIO
    answers: BinaryIO


class Naming:
    """Answers come in the order of the questions; `why_kernel_unnamed` is known after the first one.

    A child that was ended from outside leaves its questions to be answered here.
    """

    def __init__(self, names: FrameNames) -> None:
        self.why_kernel_unnamed = ""
        self._names = names
        self._child: _Child | None = None
        self._open: Question | None = None
        self._answers: deque[list[Frame]] = deque()

    def start_process(self, mappings: list[bytes], size_bytes: int) -> None:
        """Not for a small capture, nor in the midst of threads, where a fork may hang, nor on systems that have no fork."""
        if size_bytes < _LARGE_BYTES or threading.active_count() > 1 or not hasattr(os, "fork"):
            return
        for_child, questions = os.pipe()
        answers, for_parent = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(questions)
            os.close(answers)
            _serve(self._names, mappings, os.fdopen(for_child, "rb"), os.fdopen(for_parent, "wb"))
        os.close(for_child)
        os.close(for_parent)
        self._child = _Child(pid, os.fdopen(questions, "wb"), os.fdopen(answers, "rb"))

    def ask(self, question: Question) -> None:
        """The answer before is fetched first: were both to write, each would wait for the other to read."""
        self._fetch()
        self._open = question
        if self._child is not None:
            # If it is gone, no answer will come either.
            with contextlib.suppress(OSError):
                pickle.dump(question, self._child.questions)
                self._child.questions.flush()

    def answer(self) -> list[Frame]:
        if not self._answers:
            self._fetch()
        return self._answers.popleft()

    def close(self) -> None:
        if self._child is None:
            return
        for pipe in (self._child.questions, self._child.answers):
            with contextlib.suppress(OSError):
                pipe.close()
        os.waitpid(self._child.pid, 0)
        self._child = None

    def _fetch(self) -> None:
        if self._open is None:
            return
        answer = self._received() or _answered(self._names, self._open)
        self._open = None
        if isinstance(answer, NecroscopeError):
            raise answer
        self.why_kernel_unnamed = answer.why_kernel_unnamed
        self._answers.append([answer.different[place] for place in answer.places])

    def _received(self) -> _Answer | NecroscopeError | None:
        if self._child is None:
            return None
        try:
            answer: _Answer | NecroscopeError = pickle.load(self._child.answers)
        except (EOFError, OSError, pickle.UnpicklingError):
            self.close()
            return None
        return answer


def _serve(names: FrameNames, mappings: list[bytes], questions: BinaryIO, answers: BinaryIO) -> NoReturn:
    """Until there is nobody who asks. Ctrl-C is for them, not for us."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        names.load_kernel(mappings)
        while True:
            pickle.dump(_answered(names, pickle.load(questions)), answers)
            answers.flush()
    finally:
        os._exit(0)


def _answered(names: FrameNames, question: Question) -> _Answer | NecroscopeError:
    try:
        frames = names.frames(question)
    except NecroscopeError as error:
        return error
    place_of = {frame: place for place, frame in enumerate(dict.fromkeys(frames))}
    return _Answer(list(place_of), [place_of[frame] for frame in frames], names.why_kernel_unnamed)
