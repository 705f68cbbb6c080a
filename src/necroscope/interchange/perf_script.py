"""The text of `perf script` (tools/perf/builtin-script.c), as FlameScope reads it: any selection of
fields that -F gives.

A sample is a line of fields and, with call chains, a line for each frame and an empty one. Frames
are innermost first.
"""

import os
import re
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.capture import Capture, CaptureFacts, ImportPlan, SampleBatch
from necroscope.interchange.script_frames import FrameLines
from necroscope.interchange.text_pieces import Piece, open_text, read_pieces
from necroscope.interchange.text_samples import GivenStacks, TextSample, TextSamples
from necroscope.model.names import LINE_LIMIT, clean

_TASK: Final = rb"(?P<pid>-?\d{1,10})(?:/(?P<tid>-?\d{1,10}))?"
_CPU: Final = rb"(?:\[(?P<cpu>\d{1,6})\][ \t]+)?(?:[a-zA-Z.]{4,6}[ \t]+)?"
_TIME: Final = rb"(?P<time>\d{1,12}\.\d{6,9}):"
_REST: Final = (
    rb"(?:[ \t]+(?P<period>\d{1,19})(?=[ \t]|$))?(?:[ \t]+(?P<event>[^ \t]{1,200}):(?=["
    rb" \t]|$))?(?P<rest>.*)"
)
# The kernel's names have up to 15 characters, which may be spaces, digits and colons: the longest
# such name wins, so that a task called `a 1 2.5: b` keeps its name; only then longer ones, then
# lines without a task, then those without a time.
_HEADERS: Final = tuple(
    re.compile(form + _REST)
    for form in (
        rb"(?P<comm>[^ \t].{0,14})[ \t]+" + _TASK + rb"[ \t]+" + _CPU + _TIME,
        rb"(?P<comm>[^ \t].{0,200}?)[ \t]+" + _TASK + rb"[ \t]+" + _CPU + _TIME,
        rb"(?P<comm>)" + _TASK + rb"[ \t]+" + _CPU + _TIME,
        rb"(?P<comm>[^ \t\[].{0,14}?)?(?P<pid>)(?P<tid>)[ \t]*" + _CPU + _TIME,
        rb"(?P<comm>[^ \t].{0,200}?)[ \t]+"
        + _TASK
        + rb"(?:[ \t]+\[(?P<cpu>\d{1,6})\])?(?P<time>)(?=[ \t]+(?:\d{1,19}[ \t]+)?[^"
        rb" \t]{1,200}:(?:[ \t]|$))",
    )
)
_FACT: Final = re.compile(
    rb"^# (hostname|os release|arch|nrcpus avail|cmdline) : (.*)$", re.MULTILINE
)
_LARGEST: Final = (1 << 63) - 1
_LARGEST_TASK: Final = (1 << 31) - 1
# A line of fields is short, and with a frame behind them as long as a name of C++. What is longer
# is cut: the forms try a run of blanks at every place in it.
_HEADER_BYTES: Final = 1 << 14
_BATCH: Final = 1 << 16
_MOST_NAMES: Final = 1 << 20
_TAIL_BYTES: Final = 1 << 20
_CLOCK: Final = (
    "the text of `perf script` has the kernel's own clock, which no wall clock is known for"
)


class _Header(NamedTuple):
    comm: bytes
    pid: int
    tid: int
    cpu: int
    time_ns: int
    period: int
    event: bytes
    rest: bytes


def open_perf_script(path: Path) -> Capture:
    """A capture of a `perf script` text, gzipped or not; UsageError when it holds no sample."""
    facts = CaptureFacts("perf script", why_not_wall_clock=_CLOCK)
    try:
        first = next(read_pieces(path), Piece(0, b""))
    except CorruptData as error:
        raise UsageError(
            error.facts, "give the text that `perf script` wrote, or perf.data itself"
        ) from None
    header = next(
        (
            found
            for line in first.content.split(b"\n")
            if line[:1] != b"#" and (found := parse_header(line))
        ),
        None,
    )
    if header is None:
        line = first.content.lstrip().partition(b"\n")[0]
        raise UsageError(
            f"{path} holds no sample of `perf script`: it begins with {clean(line[:200])!r}",
            "give the text that `perf script` wrote",
        )
    facts.has_time = header.time_ns >= 0
    if facts.has_time:
        facts.first_ns = header.time_ns
    else:
        facts.why_not_wall_clock = "the samples have no time"
    _read_facts(first.content, facts)
    capture = Capture(facts, lambda plan: _Reading(path, capture, plan).batches())
    return capture


def parse_header(line: bytes) -> _Header | None:
    """The line of fields of a sample. -1 stands for what it does not have."""
    line = line.lstrip(b" \t")[:_HEADER_BYTES]
    for form in _HEADERS:
        found = form.match(line)
        if found is not None:
            break
    else:
        return None
    comm, pid, tid, cpu, time, period, event, rest = found.group(
        "comm", "pid", "tid", "cpu", "time", "period", "event", "rest"
    )
    number = _task(pid)
    return _Header(
        comm.rstrip() if comm else b"",
        number,
        _task(tid) if tid else number,
        int(cpu) if cpu else -1,
        _time_ns(time) if time else -1,
        min(int(period), _LARGEST) if period else 1,
        event or b"",
        rest,
    )


def _task(text: bytes | None) -> int:
    """A number that no task can have is unknown."""
    number = int(text) if text else -1
    return number if -_LARGEST_TASK <= number <= _LARGEST_TASK else -1


def _time_ns(text: bytes) -> int:
    """Seconds with six digits behind the point, or nine with --ns."""
    digits = len(text) - text.index(b".") - 1
    return int(text.replace(b".", b"")) * (1000 if digits == 6 else 10 ** (9 - digits))


def last_time_ns(path: Path) -> int | None:
    """The latest time of the last samples of a text, on its own clock."""
    tail = b""
    try:
        with open_text(path) as file:
            if path.suffix != ".gz":
                file.seek(max(file.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            while piece := file.read(_TAIL_BYTES):
                tail = (tail + piece)[-_TAIL_BYTES:]
    except (OSError, EOFError, zlib.error):
        pass  # a cut gzip file has a last sample nevertheless
    lines = (line for line in tail.split(b"\n") if line[:1] not in (b"\t", b"#", b""))
    return max((found.time_ns for line in lines if (found := parse_header(line))), default=None)


def _read_facts(content: bytes, facts: CaptureFacts) -> None:
    """`perf script --header` writes what perf.data says about itself."""
    found = {
        name: clean(value.strip(), LINE_LIMIT) for name, value in _FACT.findall(content[: 1 << 16])
    }
    facts.host, facts.kernel_release, facts.arch = (
        found.get(name) for name in (b"hostname", b"os release", b"arch")
    )
    facts.command_line = found.get(b"cmdline")
    cpus = found.get(b"nrcpus avail", "")
    facts.cpus = int(cpus) if cpus.isdecimal() and len(cpus) < 7 else None


class _Reading:
    """One pass over the text."""

    def __init__(self, path: Path, capture: Capture, plan: ImportPlan) -> None:
        stacks = GivenStacks(plan.profile)
        self._path = path
        self._capture = capture
        self._frames = FrameLines(stacks)
        self._samples = TextSamples(capture.facts, plan, stacks)
        self._events: dict[bytes, int] = {}
        self._comms: dict[bytes, str] = {}
        self._unread = 0
        self._one_number = False

    def batches(self) -> Iterator[SampleBatch]:
        notes: list[str] = []
        try:
            for piece in read_pieces(self._path, b"\n\n"):
                self._read_piece(piece)
                self._capture.bytes_read = piece.offset + len(piece.content)
                if len(self._samples) >= _BATCH:
                    yield from self._take()
        except CorruptData as error:
            notes.append(f"{error.facts}; what came before was read")
        yield from self._take()
        if self._unread:
            notes.append(f"{self._unread} lines are neither samples nor frames, and were left out")
        if self._one_number:
            notes.append(
                "samples have one number for process and thread (perf script -F +pid gives both)"
            )
        self._capture.notes[:] = [*notes, *self._samples.notes()]

    def _read_piece(self, piece: Piece) -> None:
        for paragraph in piece.content.split(b"\n\n"):
            head, _, frames = paragraph.strip(b"\n").partition(b"\n")
            if not head:
                continue
            if head[:1] == b"#" or (
                frames and frames.count(b"\n\t") != frames.count(b"\n") + (frames[:1] == b"\t") - 1
            ):
                self._read_lines(paragraph.split(b"\n"))
            else:
                self._add(head, frames)

    def _read_lines(self, lines: list[bytes]) -> None:
        """Samples without a chain follow each other without an empty line, and comments may stand
        before them.
        """
        head = b""
        frames: list[bytes] = []
        for line in chain(lines, (b"",)):
            if line[:1] == b"#":
                continue
            if not line or (line[:1] != b"\t" and parse_header(line) is not None):
                if head:
                    self._add(head, b"\n".join(frames))
                head, frames = line, []
            elif head:
                frames.append(line)
            else:
                self._unread += 1

    def _add(self, head: bytes, frames: bytes) -> None:
        found = parse_header(head)
        if found is None:
            self._unread += 1
            return
        comm = self._comms.get(found.comm)
        if comm is None:
            comm = clean(found.comm)
            if len(self._comms) < _MOST_NAMES:
                self._comms[found.comm] = comm
        event = (
            self._events.setdefault(found.event, len(self._events))
            if len(self._events) < _BATCH
            else 0
        )
        self._one_number |= found.pid == found.tid and b"/" not in head
        stack = self._frames.place(frames or found.rest.strip())
        self._samples.add(
            TextSample(found.time_ns, found.cpu, found.pid, found.tid, comm, event, 1, stack)
        )

    def _take(self) -> Iterator[SampleBatch]:
        self._capture.facts.event_names[:] = [clean(event) for event in self._events]
        yield from self._samples.take()
        self._frames.forget()
