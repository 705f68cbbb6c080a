"""What was missed because the recorder before this one was cut off: by a signal, a crash, or the
power.

A recorder that is told to end seals all it has. One that is cut off leaves the journal of its last
segment, and the rows since its last flush are in no file. The next recorder knows that, and only
it can say so.
"""

import contextlib
from pathlib import Path

from necroscope.model.reading import Gap
from necroscope.segment.journal_reader import JournalReader
from necroscope.segment.recording import LIVE, segment_paths, segment_start_ns


def missed_since_cut(directory: Path, start_ns: int) -> list[Gap]:
    """A gap from the last row in the directory until `start_ns`. None if the last recorder sealed
    its last segment, or if the clock now shows an earlier time.
    """
    last_ns = None
    for path in reversed(segment_paths(directory)):
        if not path.name.endswith(LIVE):
            break
        last_ns, has_rows = _end_of(path)
        if has_rows:  # else it was cut off before its first flush, and the one before it counts
            break
    if last_ns is None or last_ns >= start_ns:
        return []
    cause = "nothing was recorded: the recorder before this one was killed, or the power was cut"
    return [Gap("*", last_ns, start_ns, cause)]


def _end_of(path: Path) -> tuple[int, bool]:
    """When the last row of a journal was taken, or its segment began; and whether there is one."""
    journal = JournalReader(path, segment_start_ns(path.name))
    has_rows = False
    with contextlib.suppress(OSError):  # cut off before it had a journal
        for _ in journal.advance():
            has_rows = True
    return journal.last_ns, has_rows
