"""Dates captures that have no wall clock: by a kernel log that has both clocks, the file's name, or
when it was last written.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from necroscope.interchange.capture import Capture
from necroscope.interchange.detect import FileKind
from necroscope.interchange.inputs import Input
from necroscope.interchange.perf_data.reader import sample_span_ns
from necroscope.model.units import NS_PER_S

if TYPE_CHECKING:
    from necroscope.interchange.dmesg import LogText

_DAY_NS: Final = 86400 * NS_PER_S
# Names and file times are good to a second or some: within this two captures are of one boot and
# keep their distance.
_SAME_BOOT_NS: Final = 10 * NS_PER_S


class Placing(NamedTuple):
    """What to add to a capture's times to have UTC, and where that is from if it is not the capture
    itself.
    """

    offset_ns: int
    origin: str | None


class WallClock:
    """The kernel's own clock (perf without -k, dmesg without -T) counts from boot: one offset holds
    for all of one boot.
    """

    def __init__(self) -> None:
        self._known: Placing | None = None

    def learn_from_captures(self, captures: Sequence[Capture]) -> None:
        for capture in captures:
            offset_ns = capture.facts.since_boot_offset_ns
            if offset_ns is not None and self._known is None:
                self._known = Placing(offset_ns, "the clock of a capture that has both clocks")

    def learn_from_log(self, lines: Sequence["LogText"]) -> None:
        """Lines with both clocks say the offset itself, to about a second."""
        offsets = [
            line.time_ns - line.since_boot_ns
            for line in lines
            if line.time_ns is not None and line.since_boot_ns is not None
        ]
        if offsets:
            self._known = Placing(
                sorted(offsets)[len(offsets) // 2], "the kernel log, which has both clocks"
            )

    def place_capture(self, given: Input, capture: Capture) -> Placing:
        facts = capture.facts
        if facts.has_time and facts.time_is_wall_clock:
            return Placing(0, None)
        start_ns = _start_by_name_ns(given)
        if not facts.has_time:
            return (
                Placing(given.written_ns, "the file's time")
                if start_ns is None
                else Placing(start_ns, "the file's name")
            )
        if start_ns is not None and facts.first_ns is not None:
            return self._settle(Placing(start_ns - facts.first_ns, "the file's name"))
        if self._known is not None and given.folder is None:
            return self._known
        return self._settle(
            Placing(given.written_ns - (_find_last_ns(given) or 0), "the file's time")
        )

    def place_log(self, given: Input, lines: Sequence["LogText"]) -> Placing:
        last_ns = next(
            (line.since_boot_ns for line in reversed(lines) if line.since_boot_ns is not None), 0
        )
        return self._known or self._settle(Placing(given.written_ns - last_ns, "the file's time"))

    def _settle(self, placing: Placing) -> Placing:
        if (
            self._known is not None
            and abs(self._known.offset_ns - placing.offset_ns) < _SAME_BOOT_NS
        ):
            return self._known
        self._known = placing
        return placing


def _start_by_name_ns(given: Input) -> int | None:
    """A name with a date and no time of day says too little."""
    start_ns = given.name.start_ns
    return None if start_ns is None or start_ns % _DAY_NS == 0 else start_ns


def _find_last_ns(given: Input) -> int | None:
    """By the tail of a text, or one pass over times alone: the head does not say when a capture
    ended.
    """
    if given.kind is FileKind.PERF_SCRIPT:
        from necroscope.interchange.perf_script import last_time_ns  # noqa: PLC0415 - not for perf.data

        return last_time_ns(given.path)
    span = sample_span_ns(given.path)
    return None if span is None else span[1]
