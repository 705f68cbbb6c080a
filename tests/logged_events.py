"""Rows of `events` as the recorder makes them of lines of the kernel log, for nodes that are
drawn.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.drawn_node import NS, at

from necroscope.model.reading import Rows
from necroscope.sources.kernel_log.line import LogLine
from necroscope.sources.kernel_log.patterns import PatternSet
from necroscope.sources.kernel_log.sequences import Sequencer

CAPTURES = Path(__file__).parent / "data/kernel_log"
_LINE = re.compile(r"<(\d)>\[ *([\d.]+)\] (.*)")


def event_rows(lines: Iterable[LogLine]) -> Rows:
    sequencer = Sequencer(PatternSet())
    events = [event for line in lines for event in sequencer.feed(line, line.time_ns)[0]]
    return [event.row() for event in (*events, *sequencer.finish())]


def captured(name: str, second: float) -> list[LogLine]:
    """The lines of a capture, the first of them at this second of a drawn node."""
    found = [
        match.groups()
        for match in map(_LINE.fullmatch, (CAPTURES / name).read_text().splitlines())
        if match
    ]
    start_ns = at(second) - round(float(found[0][1]) * NS)
    return [
        LogLine(start_ns + round(float(time) * NS), number, int(severity), 0, True, text)
        for number, (severity, time, text) in enumerate(found)
    ]
