"""Lines of the kernel log, and what a sequencer makes of them."""

import json
import re
from pathlib import Path

from necroscope.model.event import Event
from necroscope.model.reading import Alarm
from necroscope.model.units import NS_PER_S
from necroscope.sources.kernel_log.line import LogLine, clean_line
from necroscope.sources.kernel_log.patterns import PatternSet
from necroscope.sources.kernel_log.sequences import Sequencer

DATA = Path(__file__).parent / "data/kernel_log"
ENA0 = "ena 0000:00:05.0 eth0: "


def said(
    text: str, at_s: float = 0, *, severity: int = 3, by_kernel: bool = True, sequence: int = 0
) -> LogLine:
    return LogLine(
        int(at_s * NS_PER_S), sequence, severity, 0 if by_kernel else 1, by_kernel, clean_line(text)
    )


def dump(name: str) -> list[LogLine]:
    lines = []
    for number, raw in enumerate((DATA / name).read_text().rstrip("\n").split("\n")):
        match = re.fullmatch(r"<(\d)>\[ *([\d.]+)\] (.*)", raw)
        assert match is not None
        lines.append(said(match[3], float(match[2]), severity=int(match[1]), sequence=number))
    return lines


def read_story(
    lines: list[LogLine], sequencer: Sequencer | None = None
) -> tuple[list[Event], list[Alarm]]:
    sequencer = sequencer or Sequencer(PatternSet())
    events, alarms = [], []
    for line in lines:
        finished, raised = sequencer.feed(line, line.time_ns)
        events += finished
        alarms += raised
    return events + sequencer.finish(), alarms


def fields(event: Event) -> dict[str, object]:
    return json.loads(event.fields or "{}")
