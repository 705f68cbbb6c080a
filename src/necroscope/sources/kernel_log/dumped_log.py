"""The kernel log of a boot that is over, as text: what pstore or a crash dump kept of it.

`<4>[  812.345678] text` (fs/pstore/platform.c, with a first line `Panic#1 Part1`), or without the
level (makedumpfile --dump-dmesg). Nothing in it says when a stamp was: the last line is as old as
the file.
"""

import re
from typing import Final

from necroscope.model.units import NS_PER_US
from necroscope.sources.kernel_log.line import NEWLINE, LogLine, clean_line

MOST_LINES: Final = 2_000
_UNKNOWN_SEVERITY: Final = 6
_LINE: Final = re.compile(
    rb"(?:<(?P<level>\d{1,3})>)?\[ *(?P<seconds>\d{1,12})\.(?P<micros>\d{6})\]"
    rb"(?:\[ *[TC]\d+\])? ?(?P<text>.*)"
)


def parse(text: bytes, ended_ns: int) -> list[LogLine]:
    """The newest lines, oldest first; the last one was written at `ended_ns`.

    The kernel repeats the stamp for each line of a record, and a user may have put a newline into a
    name that is printed: lines of one stamp are one record, of which only the beginning is
    believed.
    """
    records: list[tuple[int, int, list[bytes]]] = []
    for raw in text.splitlines():
        match = _LINE.match(raw)
        if match is None:
            continue
        stamp_us = int(match["seconds"] + match["micros"])
        if records and records[-1][0] == stamp_us:
            records[-1][2].append(match["text"])
        else:
            records.append((stamp_us, int(match["level"] or _UNKNOWN_SEVERITY), [match["text"]]))
    if not records:
        return []
    last_us = records[-1][0]
    return [
        LogLine(
            ended_ns - max(0, last_us - stamp_us) * NS_PER_US,
            None,
            level & 7,
            level >> 3,
            level >> 3 == 0,
            NEWLINE.join(clean_line(part) for part in parts),
        )
        for stamp_us, level, parts in records[-MOST_LINES:]
    ]
