"""`necroscope top`: the recorder into memory, and the live view over it."""

import json
import sys
import threading
import time
from pathlib import Path

import click

from necroscope.cli.recorder_options import chosen_settings, settings_options
from necroscope.errors import UsageError
from necroscope.model.clocks import TimeLine
from necroscope.model.units import NS_PER_S, format_share
from necroscope.recorder.memory import MemorySegment
from necroscope.recorder.node_sources import open_sources
from necroscope.recorder.recorder import Recorder, Status
from necroscope.settings import Settings
from necroscope.sources.perf.log_clock import LogClock
from necroscope.verdicts.ledger import Ledger
from necroscope.views.incident_lines import incident_line, recent
from necroscope.views.tui.look import Look
from necroscope.views.tui.plain import render_plain, screen_to_json
from necroscope.views.tui.top_model import build

_KEEP_NS = 600 * NS_PER_S
_ONCE_NS = 2_200_000_000


@click.command()
@click.option("--once", is_flag=True, help="look for two seconds, print, and end")
@click.option("--json", "as_json", is_flag=True, help="the same as JSON")
@click.option(
    "--recording",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="also show what this node's recorder has found recently",
)
@settings_options
def command(
    once: bool,
    as_json: bool,
    recording: Path | None,
    settings_file: Path | None,
    **options: str | None,
) -> None:
    """Every core now: its mode, who is on it and in which kernel function, softirq delay, zombies,
    events.

    Nothing is written to disk; the last ten minutes can be looked back at. Press ? for the keys.

    \b
    Examples:
      necroscope top
      necroscope top --once
      necroscope top --recording /var/lib/necroscope
      necroscope top --json | jq .cores
    """
    settings = chosen_settings(settings_file, options)
    memory = MemorySegment(_KEEP_NS)
    ledger = Ledger.open(recording) if recording is not None else None
    if once or as_json:
        _Live(settings, memory, ledger, _ONCE_NS).join()
        screen = build(memory, Look())
        click.echo(json.dumps(screen_to_json(screen)) if as_json else render_plain(screen))
        return
    if not (sys.stdout.isatty() and sys.stdin.isatty()):
        raise UsageError("top needs a terminal", "use: necroscope top --once, or --json")
    # The extra `top`: what is printed once needs none of it.
    from necroscope.views.tui.top_app import TopApp  # noqa: PLC0415

    live = _Live(settings, memory, ledger)
    try:
        TopApp(memory).run()
    finally:
        live.stop()


class _Live:
    """The recorder in a thread of its own; opened here, so that an early failure is shown
    before the screen is taken.
    """

    def __init__(
        self,
        settings: Settings,
        memory: MemorySegment,
        ledger: Ledger | None,
        limit_ns: int | None = None,
    ) -> None:
        self._clock = LogClock()
        time_line = TimeLine.starting_at(self._clock.read())
        self._memory = memory
        self._ledger = ledger
        sources = open_sources(settings, self._clock, time_line)
        self._recorder = Recorder(settings, sources, memory, time_line, flush_ns=0)
        self._error: Exception | None = None
        self._thread = threading.Thread(
            target=self._work, args=(limit_ns,), name="necroscope-recorder"
        )
        self._thread.start()

    def stop(self) -> None:
        self._recorder.stop()
        self.join()

    def join(self) -> None:
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _work(self, limit_ns: int | None) -> None:
        try:
            self._recorder.run(limit_ns, self._describe)
        except Exception as error:  # noqa: BLE001 - shown by the thread that owns the terminal
            self._error = error

    def _describe(self, status: Status, notices: list[str]) -> None:
        elapsed_s = max(1.0, (time.time_ns() - status.started_ns) / NS_PER_S)
        text = (
            f"{status.samples / elapsed_s:.0f} samples/s at {status.hz} Hz,"
            f" {format_share(status.cpu_share)} of a core"
        )
        self._memory.describe(text, [*self._incidents(), *self._recorder.notices(), *notices])

    def _incidents(self) -> list[str]:
        if self._ledger is None:
            return []
        self._ledger.refresh()
        return [incident_line(entry) for entry in recent(self._ledger)]
