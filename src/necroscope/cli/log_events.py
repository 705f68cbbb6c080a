"""What the lines of an imported kernel log mean, by the recorder's own patterns."""

from collections.abc import Sequence

from necroscope.interchange.dmesg import LogText
from necroscope.model.reading import Rows


def events_of(lines: Sequence[tuple[int, LogText]]) -> Rows:
    """Rows of `events`; only what claims no facility but the kernel's is the kernel's."""
    from necroscope.sources.kernel_log.line import LogLine  # noqa: PLC0415 - only for those who give a kernel log
    from necroscope.sources.kernel_log.patterns import PatternSet  # noqa: PLC0415
    from necroscope.sources.kernel_log.sequences import Sequencer  # noqa: PLC0415

    sequencer = Sequencer(PatternSet())
    events = []
    for time_ns, line in lines:
        read = LogLine(
            time_ns, None, line.severity, line.facility, line.facility == 0, line.message
        )
        events += sequencer.feed(read, time_ns)[0]
    return [event.row() for event in (*events, *sequencer.finish())]
