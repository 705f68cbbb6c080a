"""`necroscope diagnose`: the incidents of a recording, and what did it."""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from necroscope import __version__
from necroscope.analysis.engine import Progress, diagnose
from necroscope.analysis.gap_notes import gap_notes
from necroscope.analysis.report import Report
from necroscope.analysis.victim import victim_report
from necroscope.cli.diagnose_watch import watch as watch_recording
from necroscope.cli.opened_recording import opened_recording
from necroscope.cli.output_file import output_file
from necroscope.cli.recording_place import recording_argument
from necroscope.cli.view import page_report
from necroscope.errors import PermissionMissing, UsageError
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment, parse_moment_ns
from necroscope.segment.lock import is_recorded
from necroscope.store.query import Store
from necroscope.verdicts.reading import read_report
from necroscope.views.flame.heading import literal_line
from necroscope.views.report_text import report_to_text
from necroscope.views.victim_text import victim_to_text
from necroscope.views.web.export import Export, check_built, describe, exported_page

_SILENT_S: Final = 2.0
_BAR_CELLS: Final = 30
_BEFORE_NS: Final = 60 * NS_PER_S
_AFTER_NS: Final = 20 * NS_PER_S
_MOST_GAP_NOTES: Final = 12
_VICTIM_NS: Final = 30 * NS_PER_S


@click.command()
@recording_argument("source")
@click.option(
    "--at",
    "at_text",
    metavar="T",
    help="ask about a moment: ISO 8601, or -5m before the end of the recording",
)
@click.option(
    "--cpu",
    "core",
    type=click.IntRange(min=0),
    metavar="N",
    help="only incidents of this core; with --at: ask about this core",
)
@click.option(
    "--victim",
    metavar="NAME|PID",
    help="why was this program late? its waits, and who was in the way; with --at: around it",
)
@click.option("--json", "as_json", is_flag=True, help="print JSON")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="F",
    help="also write the time machine to this one file",
)
@click.option("--again", is_flag=True, help="judge again, do not read the verdicts in it")
@click.option(
    "--watch", is_flag=True, help="stay on a live recording: show what comes, and when it is over"
)
def command(
    source: Path,
    at_text: str | None,
    core: int | None,
    victim: str | None,
    as_json: bool,
    page: Path | None,
    again: bool,
    watch: bool,
) -> None:
    """What happened, who did it, why we think so, what to do, and what will not help.

    A recording or a capture of another tool (perf.data, perf script). A healthy one has no
    incident. It also reports what it could not see, and how to record that. Verdicts that were
    made during the recording are read from it; --again judges from the data once more.

    \b
    Examples:
      necroscope diagnose /var/lib/necroscope
      necroscope diagnose D --at 2026-04-15T10:30:07 --cpu 39
      necroscope diagnose D --victim raylet --at 2026-04-15T10:30:30
      necroscope diagnose D --html incident.html
      necroscope diagnose D --json | jq '.incidents[].verdict.cause'
      necroscope diagnose /var/lib/necroscope --watch
    """
    if watch and (at_text or as_json or page or victim or core is not None):
        raise UsageError(
            "--watch prints what comes, as text", "omit --at, --cpu, --victim, --json and --html"
        )
    if victim and (page or core is not None):
        raise UsageError("--victim answers for one program", "omit --cpu and --html")
    _check_access(source)
    if page is not None:
        check_built()
    with opened_recording(source, None, None) as (store, notes):
        if watch and is_recorded(store.catalog.directory):
            click.echo("watching; Ctrl-C ends it", err=True)
            watch_recording(store.catalog.directory, _width(), click.echo)
            return
        if victim:
            click.echo(_victim(store, victim, at_text, as_json=as_json))
            return
        report = _report(store, at_text, _core(core, store), again=again)
        click.echo(_answer(report, as_json=as_json))
        if page is not None:
            with output_file(page) as out:
                out.write(_page(store, report).encode())
    for note in [*notes, *(["nothing records here now: this is all there is"] if watch else [])]:
        click.echo(f"note: {literal_line(note)}", err=True)


def _answer(report: Report, *, as_json: bool) -> str:
    """JSON is ASCII only: names from the machine cannot steer the terminal that prints it."""
    return json.dumps(report.as_json()) if as_json else report_to_text(report, _width())


def _report(store: Store, at_text: str | None, core: int | None, *, again: bool) -> Report:
    """A moment is always judged when it is asked about."""
    at_ns = _moment(at_text, store.span()) if at_text else None
    with _progress() as progress:
        if at_ns is None and not again:
            return read_report(store, progress=progress, core=core)
        return diagnose(store, at_ns, progress=progress, core=core)


def _victim(store: Store, name: str, at_text: str | None, *, as_json: bool) -> str:
    first_ns, last_ns = store.span()
    span = Span(first_ns, last_ns + 1)
    if at_text is not None:
        at_ns = _moment(at_text, store.span())
        span = Span(max(first_ns, at_ns - _VICTIM_NS), min(last_ns + 1, at_ns + _VICTIM_NS))
    report = victim_report(store, name, span)
    return json.dumps(report.as_json()) if as_json else victim_to_text(report)


def _page(store: Store, report: Report) -> str:
    """The time machine over all incidents, which opens at the worst."""
    first_ns, last_ns = store.span()
    windows = [
        Span(max(first_ns, each.from_ns - _BEFORE_NS), min(last_ns + 1, each.to_ns + _AFTER_NS))
        for each in report.incidents
    ]
    view = Span(first_ns, last_ns + 1)
    if windows:
        view = Span(min(start for start, _ in windows), max(end for _, end in windows))
    answer = page_report(report) | {"failed": [], "is_complete": True, "progress": 1.0}
    answer["notes"] = [*report.notes, *gap_notes(report.gaps)[:_MOST_GAP_NOTES]]
    return exported_page(store, describe(store, __version__), Export(view, windows, "", answer))


def _check_access(source: Path) -> None:
    try:
        is_there, needed = source.exists(), os.R_OK | (os.X_OK if source.is_dir() else 0)
    except PermissionError:
        is_there, needed = True, os.R_OK
    if is_there and not os.access(source, needed):
        raise PermissionMissing(
            f"may not read {source}", "run as the user who recorded it, or root"
        )


def _core(core: int | None, store: Store) -> int | None:
    cores = store.info().cpus
    if (
        core is not None
        and cores is not None
        and core not in {*range(cores), *_core_numbers(store)}
    ):
        raise UsageError(
            f"the recording has no core {core}", f"it has {cores}; see: necroscope info"
        )
    return core


def _core_numbers(store: Store) -> set[int]:
    """Core numbers as they were recorded: on some machines they have holes."""
    first_ns, last_ns = store.span()
    rows = store.rows("cores", first_ns, last_ns + 1, columns=("cpu",))
    return set(rows.column("cpu").unique().to_pylist())


def _moment(text: str, span: tuple[int, int]) -> int:
    at_ns = parse_moment_ns(text, span[1])
    if not span[0] <= at_ns <= span[1]:
        facts = f"{format_moment(at_ns)} is not in the recording"
        raise UsageError(
            facts, f"it holds {format_moment(span[0])} to {format_moment(span[1])}, in UTC"
        )
    return at_ns


def _width() -> int:
    return min(shutil.get_terminal_size()[0], 120) if sys.stdout.isatty() else 100


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A line on a terminal, shown once it takes longer than a moment."""
    if not sys.stderr.isatty():
        yield None
        return
    started_s = time.monotonic()

    def show(share: float) -> None:
        if time.monotonic() - started_s >= _SILENT_S:
            cells = int(_BAR_CELLS * share)
            click.echo(
                f"\r\x1b[K{'█' * cells}{'░' * (_BAR_CELLS - cells)} {share:4.0%}",
                nl=False,
                err=True,
            )

    try:
        yield show
    finally:
        if time.monotonic() - started_s >= _SILENT_S:
            click.echo("\r\x1b[K", nl=False, err=True)
