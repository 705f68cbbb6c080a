"""`necroscope record`: the flight recorder in the foreground, until it is stopped."""

import contextlib
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

import click

from necroscope import __version__
from necroscope.cli.end_signals import ending_signals
from necroscope.cli.recorder_options import (
    chosen_labels,
    chosen_settings,
    keeping_options,
    settings_options,
)
from necroscope.cli.recording_place import default_directory
from necroscope.cli.watched_process import WatchedProcess, push_command, verdicts_command
from necroscope.model.allocator import give_memory_back
from necroscope.model.clocks import TimeLine
from necroscope.model.names import clean
from necroscope.model.units import (
    NS_PER_S,
    format_bytes,
    format_duration,
    format_share,
    parse_duration_ns,
)
from necroscope.recorder.close_sight import give_up_close_sight
from necroscope.recorder.cut_off import missed_since_cut
from necroscope.recorder.disk import Disk
from necroscope.recorder.node_sources import open_sources
from necroscope.recorder.recorder import Recorder, Status
from necroscope.recorder.requested_windows import RequestedWindows
from necroscope.recorder.retention import RetentionLimits
from necroscope.recorder.supervision import Supervision
from necroscope.segment.journal import SegmentHeader
from necroscope.segment.last_boot import read_earlier_boot
from necroscope.segment.lock import RecordingLock
from necroscope.segment.recording import (
    RECORDING_FILE,
    Identity,
    make_directory,
    set_newer_aside,
    write_identity,
)
from necroscope.settings import Settings
from necroscope.sources.perf.log_clock import LogClock
from necroscope.symbols.broker import ENDED, Broker

# The analysis of a bad hour may take minutes behind everything else that runs.
_SILENT_S: Final = 900.0
# A state that comes back within this time was printed already.
_KNOWN_S: Final = 600.0


@click.command()
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    help="directory of the recording [/var/lib/necroscope; without root ~/.local/state/necroscope]",
)
@click.option(
    "--for", "duration", metavar="DURATION", help="stop after this long, for example 20s or 2h"
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="label of this node, may be repeated",
)
@click.option("--quiet", is_flag=True, help="no live line")
@click.option("--json", "as_json", is_flag=True, help="print what was recorded as JSON at the end")
@settings_options
@keeping_options
def command(
    directory: Path | None,
    duration: str | None,
    labels: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    settings_file: Path | None,
    **options: str | None,
) -> None:
    """Record every core, every second, until Ctrl-C, SIGTERM or --for. Under nohup it keeps
    recording after its terminal is closed.

    As root it records everything; otherwise it records what the kernel allows, and reports the rest
    as gaps.

    \b
    Examples:
      necroscope record
      necroscope record --dir ./trouble --for 10m --label zone=us-east-1a
      necroscope record --dir /data/rec --max-bytes 20GiB --max-age 14d
      necroscope record --dir D --push https://collector:7443 --push-token-file /etc/token
    """
    settings = chosen_settings(settings_file, options)
    limit_ns = parse_duration_ns(duration) if duration else None
    identity = _identity(settings, chosen_labels(settings_file, labels))
    if directory is None:
        directory = default_directory()
        click.echo(f"note: recording to {directory}", err=True)
    _set_newer_aside(directory)
    make_directory(directory)
    with RecordingLock(directory):
        write_identity(directory, identity)
        # First of all, because the lookup process takes over what it finds: on a starving node its
        # answers must come in time.
        _claim_priority()
        line = _LiveLine(quiet=quiet)
        status, disk = _record_epochs(settings, directory, identity, limit_ns, line)
    _report(directory, status, disk, as_json=as_json)


def _record_epochs(
    settings: Settings,
    directory: Path,
    identity: Identity,
    limit_ns: int | None,
    line: "_LiveLine",
) -> tuple[Status, Disk]:
    """One epoch after the other, until the time is over or a signal comes."""
    clock, broker = LogClock(), _give_up_close_sight(settings, line)
    until_ns = None if limit_ns is None else time.monotonic_ns() + limit_ns
    is_over = False
    try:
        while not is_over:
            left_ns = None if until_ns is None else max(0, until_ns - time.monotonic_ns())
            status, disk, is_over = _record(
                settings, directory, identity, clock, left_ns, line, broker
            )
    finally:
        if broker is not None:
            broker.close()
    return status, disk


def _set_newer_aside(directory: Path) -> None:
    if not (directory / RECORDING_FILE).exists():
        return
    with RecordingLock(directory):
        aside = set_newer_aside(directory)
    if aside is not None:
        click.echo(f"note: a newer necroscope recorded here: that is now in {aside}", err=True)


def _record(
    settings: Settings,
    directory: Path,
    identity: Identity,
    clock: LogClock,
    limit_ns: int | None,
    line: "_LiveLine",
    broker: Broker | None,
) -> tuple[Status, Disk, bool]:
    """One epoch: until the end, or until the timeline has long been ahead of the clock."""
    time_line = TimeLine.starting_at(reading := clock.read())
    # Before the disk is opened, which seals what an earlier recorder left.
    earlier = read_earlier_boot(directory, identity.boot_id)
    sources = open_sources(settings, clock, time_line, identity.labels, broker, earlier)

    def header(segment: str, start_ns: int) -> SegmentHeader:
        cpus = os.cpu_count() or 1
        return SegmentHeader(segment, identity.node, identity.boot_id, start_ns, cpus)

    limits = RetentionLimits(settings.max_bytes, settings.max_age_ns, settings.pin_bytes)
    start_ns = time_line.from_monotonic(reading.monotonic_ns)
    missed = missed_since_cut(directory, start_ns)
    disk = Disk(directory, header, limits, settings.free_floor_ratio, start_ns)
    recorder = Recorder(settings, sources, disk, time_line, missed=missed)
    signals = _stop_on_signals(recorder)
    _calm_garbage_collector()
    give_memory_back()
    verdicts, push = _outlets(directory, settings)
    supervision = Supervision()
    requested = RequestedWindows(disk, settings)

    def look(status: Status, notices: list[str]) -> None:
        supervision.tell()
        ended = [ENDED] if broker is not None and broker.has_ended else []
        line.tell_new([*recorder.notices(), *ended])
        line.tell([*notices, *(one for child in (*verdicts, *push) for one in child.tend())])
        for child in (*verdicts, *push):
            requested.keep(child.output())
        line.show(status, disk)
        if sources.clocks is not None and sources.clocks.is_epoch_over:
            recorder.stop()

    recorder.run(limit_ns, look)
    is_over = bool(signals) or sources.clocks is None or not sources.clocks.is_epoch_over
    if is_over and broker is not None:
        broker.close()  # before the seal, which takes more memory than all that was there until now
    line.end("sealing the last segment")
    disk.close()
    line.tell([*disk.take_notices(), *(one for child in (*verdicts, *push) for one in child.end())])
    return recorder.status, disk, is_over


def _give_up_close_sight(settings: Settings, line: "_LiveLine") -> Broker | None:
    try:
        return give_up_close_sight(settings)
    except OSError as error:
        line.tell([f"the recorder keeps CAP_SYS_PTRACE: {error.strerror}"])
        return None


def _outlets(
    directory: Path, settings: Settings
) -> tuple[list[WatchedProcess], list[WatchedProcess]]:
    """The processes that judge and push what is recorded, as far as they are wanted."""
    verdicts = WatchedProcess("verdicts", verdicts_command(directory), silent_s=_SILENT_S)
    push = WatchedProcess("push", push_command(directory, settings))
    return [verdicts][: settings.keeps_verdicts], [push][: settings.push_url is not None]


def _calm_garbage_collector() -> None:
    """Rows come and go by the thousand and none is part of a cycle: looking for cycles among them
    is a fifth of our cost.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)


def _claim_priority() -> None:
    """A starved node is when it matters to be run in time, and we need little; the children lower
    themselves again.
    """
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)


def _identity(settings: Settings, labels: dict[str, str]) -> Identity:
    kernel = settings.host_root / "proc/sys/kernel"
    return Identity(
        _read(kernel / "hostname"),
        _read(kernel / "random/boot_id"),
        f"necroscope {__version__}",
        labels,
    )


def _read(path: Path) -> str:
    try:
        return clean(path.read_bytes().strip())
    except OSError:
        return "unknown"


def _stop_on_signals(recorder: Recorder) -> list[int]:
    """The first SIGINT, SIGTERM or SIGHUP ends the recording and seals it; a second one ends the
    process at once. Returns those that came, also later.
    """
    came: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        came.append(number)
        signal.signal(number, signal.SIG_DFL)
        recorder.stop()

    for number in ending_signals():
        signal.signal(number, stop)
    return came


class _LiveLine:
    """One line on a terminal, rewritten each second; messages get lines of their
    own.
    """

    def __init__(self, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._is_live = not quiet and sys.stderr.isatty()
        self._clock = clock
        # Until when each state needs no words, by its text.
        self._known: dict[str, float] = {}

    def show(self, status: Status, disk: Disk) -> None:
        if self._is_live:
            with contextlib.suppress(OSError):
                width = os.get_terminal_size(sys.stderr.fileno()).columns
                self._write(f"\r\x1b[K{_live_text(status, disk)[: width - 1]}", ends_line=False)

    def tell_new(self, states: list[str]) -> None:
        """What is so now and was not so for a while: a state that comes and goes with the load is
        printed once.
        """
        if states or self._known:
            now_s = self._clock()
            self._known = {text: until for text, until in self._known.items() if until > now_s}
            self.tell([state for state in states if state not in self._known])
            self._known |= dict.fromkeys(states, now_s + _KNOWN_S)

    def tell(self, happenings: list[str]) -> None:
        """An event is printed each time it happens."""
        for happening in happenings:
            self._write(
                ("\r\x1b[K" if self._is_live else "") + clean(f"warning: {happening}", 1000)
            )

    def end(self, text: str) -> None:
        if self._is_live:
            self._write(f"\r\x1b[K{text}")

    def _write(self, text: str, *, ends_line: bool = True) -> None:
        # A lost listener (a pipe's reader that ended, a terminal that was closed) must
        # not end the recording.
        with contextlib.suppress(OSError):
            click.echo(text, nl=ends_line, err=True)


def _live_text(status: Status, disk: Disk) -> str:
    parts = [
        f"recording {format_duration(status.elapsed_ns)}",
        f"{status.samples * NS_PER_S // max(1, status.elapsed_ns)} samples/s",
        format_bytes(disk.size_bytes),
        f"{status.events} events",
        f"{status.gaps + disk.pauses} gaps",
        f"{format_share(status.cpu_share)} of a core",
    ]
    if status.lost_samples:
        parts.append(f"{status.lost_samples} samples lost")
    if status.last_event:
        parts.append(status.last_event)
    return " · ".join(parts)


def _report(directory: Path, status: Status, disk: Disk, *, as_json: bool) -> None:
    gaps = status.gaps + disk.pauses
    if as_json:
        facts = {
            "dir": str(directory),
            "samples": status.samples,
            "rows": status.rows,
            "events": status.events,
            "gaps": gaps,
            "lost_samples": status.lost_samples,
            "bytes": disk.size_bytes,
            "segments": disk.segments,
        }
        click.echo(json.dumps(facts))
        return
    click.echo(
        f"{status.samples} samples, {status.events} events, {gaps} gaps in"
        f" {format_bytes(disk.size_bytes)}: necroscope info {directory}"
    )
