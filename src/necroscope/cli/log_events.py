"""What the lines of an imported kernel log mean, by the recorder's own patterns."""

from collections.abc import Sequence

from necroscope.interchange.dmesg import LogText
from necroscope.model.reading import Rows


def events_of(lines: Sequence[tuple[int, LogText]]) -> Rows:
    """Rows of `events`. Where the text does not say who wrote a line, it is taken for the kernel's,
    but for one that has the mark of what daemons forward.
    """
    from necroscope.sources.kernel_log.line import FORWARDED, LogLine  # noqa: PLC0415 - only for those who give a kernel log
    from necroscope.sources.kernel_log.patterns import PatternSet  # noqa: PLC0415
    from necroscope.sources.kernel_log.sequences import Sequencer  # noqa: PLC0415

    sequencer = Sequencer(PatternSet())
    events = []
    for time_ns, line in lines:
        by_kernel = (
            line.facility == 0
            if line.facility is not None
            else FORWARDED.search(line.message) is None
        )
        read = LogLine(time_ns, None, line.severity, line.facility or 0, by_kernel, line.message)
        events += sequencer.feed(read, time_ns)[0]
    return [event.row() for event in (*events, *sequencer.finish())]
