"""Folded stacks (stackcollapse-*.pl, FlameGraph): `outermost;...;innermost COUNT` on each line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.capture import Capture, CaptureFacts, ImportPlan, SampleBatch
from necroscope.interchange.text_pieces import read_pieces
from necroscope.interchange.text_samples import GivenStacks, TextSample, TextSamples
from necroscope.model.frame import Frame
from necroscope.model.names import clean

# stackcollapse-perf.pl --all marks frames so: kernel, jit, inlined.
_MARKS: Final = {b"_[k]": "kernel", b"_[j]": "jit", b"_[i]": "user"}
_COUNT_DIGITS: Final = 18
_FUNCTION_LIMIT: Final = 200


def open_folded(path: Path) -> Capture:
    """A capture of folded stacks: no time, core or process; the outermost frame, which is most
    often the name, is its comm.
    """
    facts = CaptureFacts(
        "folded stacks",
        has_time=False,
        why_not_wall_clock="folded stacks have no time",
    )
    first = next(
        (line for piece in _pieces(path) for line in piece.split(b"\n") if line.strip()), b""
    )
    if parse_line(first) is None:
        raise UsageError(
            f"{path} holds no folded stacks: it begins with {clean(first[:200])!r}",
            "a line is `outermost;...;innermost COUNT`",
        )
    capture = Capture(facts, lambda plan: _read(path, capture, plan))
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


def _read(path: Path, capture: Capture, plan: ImportPlan) -> Iterator[SampleBatch]:
    stacks = GivenStacks(plan.profile)
    samples = TextSamples(capture.facts, plan, stacks)
    known: dict[bytes, tuple[int, str | None]] = {}
    unread = 0
    notes = [
        (
            "folded stacks have no time, core or process; the outermost frame is taken for the"
            " task's name"
        )
    ]
    try:
        for content in _pieces(path):
            for line in filter(bytes.strip, content.split(b"\n")):
                parsed = parse_line(line)
                if parsed is None:
                    unread += 1
                    continue
                names, count = parsed
                frames = [_number(name, stacks, known) for name in names]
                place = stacks.add([number for number, _ in frames], frames[-1][1])
                samples.add(TextSample(-1, -1, -1, -1, clean(names[0]), 0, count, place))
            yield from samples.take()
            stacks.clear()
    except CorruptData as error:
        notes.append(f"{error.facts}; what came before was read")
    if unread:
        notes.append(f"{unread} lines are not folded stacks, and were left out")
    capture.notes[:] = notes


def _number(
    name: bytes, stacks: GivenStacks, known: dict[bytes, tuple[int, str | None]]
) -> tuple[int, str | None]:
    """Of a frame, and its function."""
    found = known.get(name)
    if found is None:
        frame = parse_frame(name)
        found = known[name] = stacks.frame(frame), frame.function
    return found
