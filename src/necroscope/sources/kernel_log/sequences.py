"""Lines in, events out: lines that tell one story become one event. No clock, no files: the caller
says when it is.

A story ends with its last line, by silence (the window of its family in the log's own time; in
`flush`, in the reader's time, because the log's clock may run seconds apart from ours), by age, or
when too many are open. Stories of several devices may interleave.
"""

import re
from typing import Final

from necroscope.model.event import Event
from necroscope.model.reading import Alarm
from necroscope.model.units import NS_PER_S
from necroscope.sources.kernel_log.line import FORWARDED, NEWLINE, LogLine
from necroscope.sources.kernel_log.pattern import NIC, Family, Role
from necroscope.sources.kernel_log.patterns import Found, PatternSet
from necroscope.sources.kernel_log.sequence import Sequence

OPEN_LIMIT: Final = 64
# A device that complains forever still gives an event per minute.
AGE_LIMIT_NS: Final = 60 * NS_PER_S

Outcome = tuple[list[Event], list[Alarm]]

# What the kernel prints below a lockup, stall, warning or hang, in lines that do not say to whom
# they belong.
_TRACE: Final = re.compile(
    r" |\[<|Call [Tt]race:|CPU: \d|Hardware name:|Modules linked in:|RIP: |RSP: |R[A-Z0-9]{2}:"
    r" |[CFDEG]S: |CR2: |Code: |PKRU: "
    r"|Workqueue: |Sending NMI|NMI backtrace|task:|-+\[ |WARNING: |pstate: |pc : |lr : |sp : |x\d+"
    r" ?: |rcu:|Tainted: |Stack"
    r"|\"echo 0 >|(?:tx_)?buffer_info\[|(?:MAC|PHY|PCI) |Mem-Info:|Tasks state|Memory cgroup stats"
)
# `ena 0000:20:03.0: `, `e1000e 0000:00:19.0 eth0: `: a line of a device's driver.
_DRIVER_LINE: Final = re.compile(r"[\w-]+ (\S+?):? ")


class Sequencer:
    """The stories under way. Lines not written by the kernel never join a story of the kernel's."""

    def __init__(self, patterns: PatternSet) -> None:
        self._patterns = patterns
        self._open: dict[tuple[bool, str, str], Sequence] = {}
        self._latest: dict[tuple[bool, str], Sequence] = {}
        self._traced: Sequence | None = None
        self._has_user_patterns = bool(patterns.user_patterns)

    @property
    def is_open(self) -> bool:
        """Whether a story is under way, which `flush` may end."""
        return bool(self._open)

    def feed(self, line: LogLine, heard_ns: int) -> Outcome:
        """Take in a line, heard at this monotonic time: the events it finished, and the alarms it
        raised.
        """
        found = self._patterns.find(line.text)
        if found is not None and not line.by_kernel and FORWARDED.search(line.text):
            found = None
        if found is None and not self._open and not self._has_user_patterns:
            return [], []
        outcome: Outcome = (self._close_silent(line), [])
        if self._has_user_patterns:
            for user_found in self._patterns.find_user(line.text):
                # Further on in a record stands what users may have chosen.
                by_kernel = line.by_kernel and user_found[1].start() == 0
                self._alone(line._replace(by_kernel=by_kernel), user_found, outcome)
        if found is None:
            self._follow(line, heard_ns)
        elif found[0].family is None:
            self._alone(line, found, outcome)
        elif found[0].multiline:
            first, *rest = line.text.split(NEWLINE)
            self._gather(line._replace(text=first), found, found[0].family, heard_ns, outcome)
            for text in rest:
                self._go_on(line._replace(text=text), heard_ns, outcome)
        else:
            self._gather(line, found, found[0].family, heard_ns, outcome)
        return outcome

    def flush(self, heard_ns: int) -> list[Event]:
        """Events whose stories have been silent for their window, by the reader's monotonic
        time.
        """
        if not self._open:
            return []
        over = [seq for seq in self._sequences() if heard_ns - seq.heard_ns > _window_ns(seq)]
        return [self._close(seq) for seq in over]

    def finish(self) -> list[Event]:
        """All stories, as far as they have been reported."""
        return [self._close(seq) for seq in self._sequences()]

    def _sequences(self) -> list[Sequence]:
        """Each open one once, oldest first; a device may be known by two names."""
        return list(dict.fromkeys(self._open.values()))

    def _alone(self, line: LogLine, found: Found, outcome: Outcome) -> None:
        sequence = Sequence(line, found[0])
        self._add(sequence, line, found, outcome)
        outcome[0].append(sequence.event())

    def _add(self, sequence: Sequence, line: LogLine, found: Found, outcome: Outcome) -> None:
        alarm = sequence.add(line, *found)
        if alarm is not None:
            outcome[1].append(alarm)

    def _gather(
        self, line: LogLine, found: Found, family: Family, heard_ns: int, outcome: Outcome
    ) -> None:
        pattern, match = found
        names = _names(family, match)
        sequence = self._find(line.by_kernel, family, names)
        if sequence is None:
            if pattern.role is Role.JOINS:
                return
            sequence = Sequence(line, pattern)
            if len(self._open) >= OPEN_LIMIT:
                outcome[0].append(self._close(next(iter(self._open.values()))))
        for name in names or [""]:
            self._open[line.by_kernel, family.name, name] = sequence
        self._latest[line.by_kernel, family.name] = sequence
        sequence.heard_ns = heard_ns
        self._add(sequence, line, found, outcome)
        if pattern.role is Role.ENDS:
            outcome[0].append(self._close(sequence))
        elif pattern.traced:
            self._traced = sequence

    def _find(self, by_kernel: bool, family: Family, names: list[str]) -> Sequence | None:
        """The open story of a line: by the names it gives, or the latest of its family where it
        gives none.
        """
        if not names:
            return self._latest.get((by_kernel, family.name))
        for name in names:
            sequence = self._open.get((by_kernel, family.name, name))
            if sequence is not None:
                return sequence
        return None

    def _go_on(self, line: LogLine, heard_ns: int, outcome: Outcome) -> None:
        """A further line of a record can only be part of the story that the first one tells."""
        found = self._patterns.find(line.text)
        if found is not None and found[0].role is Role.JOINS and found[0].family is not None:
            self._gather(line, found, found[0].family, heard_ns, outcome)
        else:
            self._follow(line, heard_ns)

    def _follow(self, line: LogLine, heard_ns: int) -> None:
        """A line that no pattern knows belongs to a story if it is a trace below it, or of the same
        device's driver.
        """
        sequence = self._traced
        if (
            sequence is None
            or sequence.first.by_kernel != line.by_kernel
            or not _TRACE.match(line.text)
        ):
            driver = _DRIVER_LINE.match(line.text)
            sequence = self._open.get((line.by_kernel, NIC.name, driver[1])) if driver else None
        if sequence is not None:
            sequence.heard_ns = heard_ns
            sequence.follow(line)

    def _close_silent(self, line: LogLine) -> list[Event]:
        over = [
            seq
            for seq in self._sequences()
            if line.time_ns - seq.last_ns > _window_ns(seq)
            or line.time_ns - seq.first.time_ns > AGE_LIMIT_NS
        ]
        return [self._close(seq) for seq in over]

    def _close(self, sequence: Sequence) -> Event:
        self._open = {key: other for key, other in self._open.items() if other is not sequence}
        self._latest = {key: other for key, other in self._latest.items() if other is not sequence}
        if self._traced is sequence:
            self._traced = None
        return sequence.event()


def _names(family: Family, match: re.Match[str]) -> list[str]:
    caught = match.groupdict()
    return [
        text
        for name, text in caught.items()
        if text is not None and name.partition("__")[0] in family.key
    ]


def _window_ns(sequence: Sequence) -> int:
    family = sequence.pattern.family
    return int(family.window_s * NS_PER_S) if family is not None else 0
