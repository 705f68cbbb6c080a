"""Which log to read: /dev/kmsg, else the journal, else a syslog file."""

from collections.abc import Callable
from pathlib import Path

from necroscope.errors import SourceUnavailable
from necroscope.sources.kernel_log.journal import JournalctlReader
from necroscope.sources.kernel_log.kmsg import KmsgReader
from necroscope.sources.kernel_log.line import LogReader
from necroscope.sources.kernel_log.syslog_file import SyslogReader


def open_log(root: Path, to_time_ns: Callable[[int], int]) -> LogReader:
    """The best log that can be read. /dev/kmsg alone has sequence numbers, and so knows what it
    lost.
    """
    refusals = []
    for open_reader, where in (
        (KmsgReader.open, root / "dev/kmsg"),
        (JournalctlReader.open, root),
        (SyslogReader.open, root),
    ):
        try:
            reader: LogReader = open_reader(where, to_time_ns)
        except SourceUnavailable as refusal:
            refusals.append(refusal.facts)
        else:
            return reader
    raise SourceUnavailable(
        f"cannot read the kernel log: {'; '.join(refusals)}",
        "give CAP_SYSLOG, or set sysctl kernel.dmesg_restrict=0; in a container mount the node's"
        " /dev/kmsg",
    )
