"""Folded stacks (stackcollapse-*.pl, FlameGraph): `outermost;...;innermost COUNT` on each line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.capture import Capture, CaptureFacts, SampleBatch
from necroscope.interchange.text_pieces import read_pieces
from necroscope.model.frame import Frame
from necroscope.model.names import clean

# stackcollapse-perf.pl --all marks frames so: kernel, jit, inlined.
_MARKS: Final = {b"_[k]": "kernel", b"_[j]": "jit", b"_[i]": "user"}
_COUNT_DIGITS: Final = 18
_FUNCTION_LIMIT: Final = 200


def open_folded(path: Path) -> Capture:
    """A capture of folded stacks: no time, core or process; the outermost frame, which is most often the name, is its comm."""
    facts = CaptureFacts("folded stacks", has_time=False, has_cpu=False, why_not_wall_clock="folded stacks have no time")
    first = next((line for piece in _pieces(path) for line in piece.split(b"\n") if line.strip()), b"")
    if parse_line(first) is None:
        raise UsageError(
            f"{path} holds no folded stacks: it begins with {clean(first[:200])!r}", "a line is `outermost;...;innermost COUNT`"
        )
    capture = Capture(facts, lambda: _read(path, capture))
    return capture


def parse_line(line: bytes) -> tuple[list[bytes], int] | None:
    """Frames, outermost first, and the count."""
    stack, _, count = line.strip().rpartition(b" ")
    whole = count.partition(b".")[0]
    if not stack or not whole.isdigit() or len(whole) > _COUNT_DIGITS:
        return None
    return stack.split(b";"), int(whole)


def parse_frame(name: bytes) -> Frame:
    kind = _MARKS.get(name[-4:])
    function = clean(name[:-4] if kind else name, _FUNCTION_LIMIT)
    module = {"kernel": "[kernel]", "jit": "[jit]"}.get(kind or "", "[unknown]")
    return Frame(None if function == "[unknown]" else function, module, kind or "user", None, None)


def _pieces(path: Path) -> Iterator[bytes]:
    return (piece.content for piece in read_pieces(path))


def _read(path: Path, capture: Capture) -> Iterator[SampleBatch]:
    known: dict[bytes, int] = {}
    unread = 0
    notes = ["folded stacks have no time, core or process; the outermost frame is taken for the task's name"]
    try:
        for content in _pieces(path):
            lines = [line for line in content.split(b"\n") if line.strip()]
            parsed = [stack for line in lines if (stack := parse_line(line)) is not None]
            unread += len(lines) - len(parsed)
            if parsed:
                yield _batch(capture, parsed, known)
    except CorruptData as error:
        notes.append(f"{error.facts}; what came before was read")
    if unread:
        notes.append(f"{unread} lines are no folded stacks, and were left out")
    capture.notes[:] = notes


def _batch(capture: Capture, parsed: list[tuple[list[bytes], int]], known: dict[bytes, int]) -> SampleBatch:
    frames: list[int] = []
    for names, _ in parsed:
        for name in names:
            number = known.get(name)
            if number is None:
                number = known[name] = capture.stacks.frame(parse_frame(name))
            frames.append(number)
    stacks = capture.stacks.stacks(np.array(frames, np.int32), np.array([len(names) for names, _ in parsed], np.int64))
    comms = np.array([capture.comms.number(clean(names[0])) for names, _ in parsed], np.int32)
    unknown = np.full(len(parsed), -1, np.int32)
    periods = np.array([count for _, count in parsed], np.int64)
    zeros = np.zeros(len(parsed), np.int64)
    return SampleBatch(zeros, unknown, unknown, unknown, comms, unknown, np.zeros(len(parsed), np.int32), periods, stacks)
