"""What the kernel of the boot before said last: its lines become events, and `boot_ended` says how
it ended. Read once, in the background, when the first recorder of a boot starts.
"""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.child import Child, read_piece
from necroscope.model.earlier_boot import EarlierBoot
from necroscope.model.event import ERROR, Event
from necroscope.model.reading import Moment, Reading, Source, Trouble
from necroscope.model.units import NS_PER_S, format_duration, format_moment
from necroscope.sources.background import Background
from necroscope.sources.kernel_log import dumped_log, journal
from necroscope.sources.kernel_log.byte_lines import ByteLines
from necroscope.sources.kernel_log.dump_files import newest_dump
from necroscope.sources.kernel_log.line import LogLine
from necroscope.sources.kernel_log.patterns import PatternSet
from necroscope.sources.kernel_log.sequences import Sequencer

_FOR_EVER_NS: Final = 1 << 62
# How far the clock that dated a dump may lie from ours.
_SKEW_NS: Final = 60 * NS_PER_S
# A boot's own recorder has these lines already; the end of a journal may repeat some.
_OVERLAP_NS: Final = 1 * NS_PER_S
_JOURNAL_S: Final = 20.0
_MOST_BYTES: Final = 8 << 20
_PANIC: Final = "kernel_panic"
# journald's last line when the system is shut down (src/journal/journald-server.c), and the
# kernel's own (kernel/reboot.c).
_ORDERLY: Final = ("Journal stopped", "reboot: ")


class Words(NamedTuple):
    """`place` has them: pstore, a crash dump or the journal."""

    place: str = ""
    lines: Sequence[LogLine] = ()

    @property
    def is_orderly(self) -> bool:
        """The system was shut down: whatever cut the recorder off, the kernel went on."""
        return any(line.text.startswith(_ORDERLY) for line in self.lines[-5:])


def find_words(root: Path, earlier: EarlierBoot) -> Words:
    """A dump is nearer to the end than the journal, which is written seconds later or never."""
    dump = newest_dump(root, earlier.recorded_to_ns - _SKEW_NS)
    lines = dumped_log.parse(dump.text, dump.ended_ns) if dump is not None else []
    if dump is not None and lines:
        return Words(dump.place, lines)
    lines = read_journal(root, earlier.boot_id)
    return Words("the journal", lines) if lines else Words()


def describe_end(earlier: EarlierBoot, words: Words) -> list[Event]:
    """Events of the lines that no recorder heard, and the end itself."""
    sequencer = Sequencer(PatternSet())
    since_ns = earlier.recorded_to_ns - _OVERLAP_NS
    events: list[Event] = []
    for line in words.lines:
        if line.time_ns >= since_ns:
            events += sequencer.feed(line, line.time_ns)[0]
    events += sequencer.finish()
    panic = next((one for one in events if one.kind == _PANIC and one.by_kernel), None)
    if panic is None and (words.is_orderly or not earlier.is_cut):
        return events
    return [*events, _boot_ended(earlier, words, panic)]


def _boot_ended(earlier: EarlierBoot, words: Words, panic: Event | None) -> Event:
    heard_ns = words.lines[-1].time_ns if words.lines else 0
    time_ns = panic.time_ns if panic is not None else max(earlier.recorded_to_ns, heard_ns)
    if panic is not None:
        how = f"{panic.message} ({words.place})"
    elif words.lines:
        how = f"no panic and no shutdown; the last line in {words.place}: {words.lines[-1].text}"
    else:
        how = "no panic and no shutdown is known; a reset or a loss of power leaves no words"
    before_ns = time_ns - earlier.recorded_to_ns
    before = f", {format_duration(before_ns)} before its end" if before_ns > 0 else ""
    return Event(
        time_ns=time_ns,
        kind="boot_ended",
        severity=ERROR,
        message=(
            f"the boot before this one ended: {how}; it is recorded up to"
            f" {format_moment(earlier.recorded_to_ns)}{before}"
        ),
        lines="\n".join(line.text for line in words.lines[-20:]) or None,
        fields=json.dumps(
            {
                "place": words.place or None,
                "boot_id": earlier.boot_id,
                "recorded_to_ns": earlier.recorded_to_ns,
                "panic": panic.message if panic is not None else None,
            }
        ),
    )


class BootEnd(Source):
    """One reading in its life. What cannot be read is said with the event, not as a gap: most boots
    leave no words.
    """

    name = "boot_end"
    tables: tuple[str, ...] = ("events",)

    def __init__(
        self,
        root: Path,
        earlier: EarlierBoot,
        background: Background[list[Event]] | None = None,
        find: Callable[[Path, EarlierBoot], Words] = find_words,
    ) -> None:
        self._root = root
        self._earlier = earlier
        self._find = find
        self._background = background or Background("boot-end")
        self._is_started = False

    def read(self, now: Moment) -> Reading:  # noqa: ARG002
        if not self._is_started:
            self._background.start(self._look)
            self._is_started = not self._background.is_idle
        events = self._background.take()
        if events is not None:
            self.idle_until_ns = _FOR_EVER_NS
            self._background.close()
        trouble = self._background.trouble
        parts = () if trouble is None else (Trouble("last words", self.tables, trouble),)
        return Reading({"events": [event.row() for event in events or []]}, parts=parts)

    def close(self) -> None:
        self._background.close()

    def _look(self) -> list[Event]:
        return describe_end(self._earlier, self._find(self._root, self._earlier))


def read_journal(
    root: Path, boot_id: str, clock: Callable[[], float] = time.monotonic
) -> list[LogLine]:
    """The end of what the journal has of a boot: the kernel's lines and journald's own. A journal
    that hangs or floods is left.
    """
    program = shutil.which("journalctl")
    directory = journal.find_directory(root)
    if program is None or directory is None:
        return []
    command = [
        program,
        f"--boot={boot_id.replace('-', '')}",
        f"--lines={dumped_log.MOST_LINES}",
        "--output=json",
        *([] if root == Path("/") else ["--directory", str(directory)]),
        *("_TRANSPORT=kernel", "+", "_TRANSPORT=driver"),
    ]
    try:
        child = Child(command, stdout=True, deadline_s=_JOURNAL_S, clock=clock)
    except OSError:
        return []
    lines, pieces, left_bytes = [], ByteLines(), _MOST_BYTES
    try:
        while not child.is_late and left_bytes > 0:
            piece = read_piece(child.stdout)
            if piece is None:
                child.wait(0.05)
                continue
            if not piece:
                break
            left_bytes -= len(piece)
            # A stamp of that boot's clock says nothing in this one.
            lines += [line for raw in pieces.feed(piece) if (line := journal.parse(raw, None))]
    finally:
        child.end(0.0)
    return lines
