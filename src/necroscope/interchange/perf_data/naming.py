"""Who names the addresses of a capture: for a large one a process of its own, so that symbols are read while samples are."""

from collections import deque
from typing import NamedTuple

from necroscope.errors import NecroscopeError
from necroscope.interchange.forked import WORTHWHILE_BYTES, Forked, Messages
from necroscope.interchange.perf_data.frame_names import FrameNames, Question
from necroscope.model.frame import Frame


class Answer(NamedTuple):
    """Frames that differ, and which of them each is: many addresses are of one function."""

    different: list[Frame]
    places: list[int]
    why_kernel_unnamed: str


class Naming:
    """Answers come in the order of the questions; `why_kernel_unnamed` is known after the first one.

    A process that was ended from outside leaves its questions to be answered here.
    """

    def __init__(self, names: FrameNames) -> None:
        self.why_kernel_unnamed = ""
        self.process: Forked | None = None
        self._names = names
        self._open: Question | None = None
        self._answers: deque[Answer] = deque()

    def start_process(self, mappings: list[bytes], size_bytes: int) -> None:
        """If a capture of this size is worth it."""
        names = self._names

        def serve(messages: Messages) -> None:
            names.load_kernel(mappings)
            while True:
                messages.send(_answered(names, messages.receive()))

        if size_bytes >= WORTHWHILE_BYTES:
            self.process = Forked.start(serve)

    def ask(self, question: Question) -> None:
        """The answer before is fetched first: were both to write, each would wait for the other to read."""
        self._fetch()
        self._open = question
        if self.process is not None:
            try:
                self.process.send(question)
            except OSError:
                self.close()

    def answer(self) -> Answer:
        if not self._answers:
            self._fetch()
        return self._answers.popleft()

    def close(self) -> None:
        if self.process is not None:
            self.process.close()
        self.process = None

    def _fetch(self) -> None:
        if self._open is None:
            return
        answer = self._received() or _answered(self._names, self._open)
        self._open = None
        if isinstance(answer, NecroscopeError):
            raise answer
        self.why_kernel_unnamed = answer.why_kernel_unnamed
        self._answers.append(answer)

    def _received(self) -> Answer | NecroscopeError | None:
        if self.process is None:
            return None
        try:
            answer: Answer | NecroscopeError = self.process.receive()
        except (EOFError, OSError):
            self.close()
            return None
        return answer


def _answered(names: FrameNames, question: Question) -> Answer | NecroscopeError:
    try:
        frames = names.frames(question)
    except NecroscopeError as error:
        return error
    place_of = {frame: place for place, frame in enumerate(dict.fromkeys(frames))}
    return Answer(list(place_of), [place_of[frame] for frame in frames], names.why_kernel_unnamed)
