"""`necroscope diagnose`: the incidents of a recording, and what did it."""

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from necroscope.analysis.engine import Progress, diagnose
from necroscope.analysis.report import Report
from necroscope.analysis.victim import longest_wait, victim_report
from necroscope.cli.diagnose_watch import watch as watch_recording
from necroscope.cli.flame_windows import WindowWords
from necroscope.cli.job import failed_jobs
from necroscope.cli.moment_completion import complete_moment
from necroscope.cli.opened_recording import opened_recording
from necroscope.cli.output_file import output_file
from necroscope.cli.page_file import page_file
from necroscope.cli.recording_place import recording_argument
from necroscope.errors import PermissionMissing, UsageError
from necroscope.model.span import Extent, Span
from necroscope.model.units import (
    NS_PER_S,
    format_duration,
    format_moment,
    format_share,
    parse_moment_ns,
)
from necroscope.segment.lock import is_recorded
from necroscope.store.busiest import busiest_stretch
from necroscope.store.query import Store
from necroscope.verdicts.reading import read_report
from necroscope.views.format import literal_line
from necroscope.views.report_text import report_to_text
from necroscope.views.victim_text import victim_to_text
from necroscope.views.web.export import check_built

_SILENT_S: Final = 2.0
_BAR_CELLS: Final = 30
_VICTIM_NS: Final = 30 * NS_PER_S


@click.command()
@recording_argument("source")
@click.option(
    "--at",
    "at_text",
    metavar="T",
    shell_complete=complete_moment,
    help="ask about a moment: ISO 8601, or -5m before the end of the recording",
)
@click.option(
    "--from",
    "start",
    metavar="T",
    shell_complete=complete_moment,
    help="only what happened since then",
)
@click.option(
    "--to",
    "end",
    metavar="T",
    shell_complete=complete_moment,
    help="only what happened before then",
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
    help="why was this program late? its waits, and who was in the way",
)
@click.option("--json", "as_json", is_flag=True, help="print JSON")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="F",
    help="also write the time machine to this one file",
)
@click.option(
    "--again", is_flag=True, help="judge again instead of reading the verdicts stored in it"
)
@click.option(
    "--watch",
    is_flag=True,
    help="follow a live recording: print each incident when it begins and when it is over",
)
def command(
    source: Path,
    at_text: str | None,
    start: str | None,
    end: str | None,
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
      necroscope diagnose D --victim raylet --from 10:30 --to 10:31
      necroscope diagnose D --html incident.html
      necroscope diagnose D --json | jq '.incidents[].verdict.cause'
      necroscope diagnose /var/lib/necroscope --watch
    """
    words = WindowWords(start, end, at_text)
    _check_question(words, core, victim, page, as_json=as_json, watch=watch)
    _check_access(source)
    if page is not None:
        check_built()
    with opened_recording(source, None, None) as (store, notes):
        if watch and is_recorded(store.catalog.directory):
            click.echo("watching; Ctrl-C ends it", err=True)
            watch_recording(store.catalog.directory, _width(), click.echo)
            return
        if victim:
            click.echo(_victim(store, victim, words, as_json=as_json))
            return
        report = _report(store, words, _core(core, store), again=again)
        click.echo(_answer(store, source, report, as_json=as_json))
        if page is not None:
            with output_file(page) as out:
                out.write(page_file(store, report))
    for note in [*notes, *(["nothing records here now: this is all there is"] if watch else [])]:
        click.echo(f"note: {literal_line(note)}", err=True)


def _answer(store: Store, source: Path, report: Report, *, as_json: bool) -> str:
    """JSON is ASCII only: names from the machine cannot steer the terminal that prints it."""
    if as_json:
        return json.dumps(report.as_json())
    place = shlex.quote(str(source))
    parts = [report_to_text(report, _width(), place)]
    if not report.incidents:
        parts += [_where_to_look(store, place), *_who_waited(store, place)]
    if failed := failed_jobs(store):
        parts.append(f"The job {failed[0]} failed. To see why:\n  necroscope job {place}")
    return "\n".join(parts)


def _check_question(
    words: WindowWords,
    core: int | None,
    victim: str | None,
    page: Path | None,
    *,
    as_json: bool,
    watch: bool,
) -> None:
    if watch and (words != WindowWords() or as_json or page or victim or core is not None):
        raise UsageError(
            "--watch only prints new incidents as text",
            "omit --at, --from, --to, --cpu, --victim, --json and --html",
        )
    if victim and (page or core is not None):
        raise UsageError("--victim answers for one program", "omit --cpu and --html")


def _report(store: Store, words: WindowWords, core: int | None, *, again: bool) -> Report:
    """A moment or a stretch is always judged when it is asked about."""
    at_ns = _moment(words.at, store.span()) if words.at else None
    span = _stretch(words, store.span())
    with _progress() as progress:
        if at_ns is None and span is None and not again:
            return read_report(store, progress=progress, core=core)
        return diagnose(store, at_ns, span, progress=progress, core=core)


def _stretch(words: WindowWords, span: Extent) -> Span | None:
    """That of --from and --to; a part that is not in the recording is said."""
    if not (words.start or words.end):
        return None
    windows = words.within(span)
    for note in windows.outside(span):
        click.echo(f"note: {note}", err=True)
    return windows.window


def _where_to_look(store: Store, place: str) -> str:
    """No incident is an answer; the reader who knows better needs the next command."""
    if not store.info().tables.get("cores"):
        return "How the cores spent their time was not recorded."
    found = busiest_stretch(store)
    if found is None:
        return "Every core was mostly idle."
    middle = format_moment((found.from_ns + found.to_ns) // 2)
    length = format_duration(found.to_ns - found.from_ns)
    return (
        f"The busiest stretch: core {found.cpu}, up to {format_share(found.share)} {found.mode},"
        f" {length} around {middle}. To look at it:\n"
        f"  necroscope diagnose {place} --at {middle} --cpu {found.cpu}"
    )


def _who_waited(store: Store, place: str) -> list[str]:
    first_ns, last_ns = store.span()
    wait = longest_wait(store, Span(first_ns, last_ns + 1))
    if wait is None:
        return []
    said = f"The longest wait: {wait.words()}. All waits of that program:"
    return [said, f"  necroscope diagnose {place} --victim {wait.task.pid}"]


def _victim(store: Store, name: str, words: WindowWords, *, as_json: bool) -> str:
    first_ns, last_ns = store.span()
    span = _stretch(words, store.span()) or Span(first_ns, last_ns + 1)
    if words.at is not None:
        at_ns = _moment(words.at, store.span())
        span = Span(max(first_ns, at_ns - _VICTIM_NS), min(last_ns + 1, at_ns + _VICTIM_NS))
    report = victim_report(store, name, span)
    return json.dumps(report.as_json()) if as_json else victim_to_text(report)


def _check_access(source: Path) -> None:
    try:
        is_there, needed = source.exists(), os.R_OK | (os.X_OK if source.is_dir() else 0)
    except PermissionError:
        is_there, needed = True, os.R_OK
    if is_there and not os.access(source, needed):
        raise PermissionMissing(
            f"cannot read {source}: permission denied", "run as the user who recorded it, or root"
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
