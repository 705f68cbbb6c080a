"""`necroscope changes`: what changed in a stretch of time against the one before it."""

import json
from pathlib import Path
from typing import Final

import click

from necroscope.analysis.window_changes import window_changes
from necroscope.cli.flame_windows import Windows, WindowWords
from necroscope.cli.moment_completion import complete_moment
from necroscope.cli.opened_recording import opened_recording
from necroscope.cli.recording_place import recording_argument
from necroscope.errors import UsageError
from necroscope.model.span import Extent, Span
from necroscope.views.window_changes_text import window_changes_to_text

_AROUND: Final = "60s"


@click.command()
@recording_argument("source")
@click.option(
    "--at",
    metavar="T",
    shell_complete=complete_moment,
    help="a moment in the middle of the stretch [the last minute]",
)
@click.option("--around", metavar="T", help=f"length of the stretch around --at [{_AROUND}]")
@click.option(
    "--from",
    "start",
    metavar="T",
    shell_complete=complete_moment,
    help="the stretch's start, instead of --at",
)
@click.option(
    "--to",
    "end",
    metavar="T",
    shell_complete=complete_moment,
    help="the stretch's end [the end of the recording]",
)
@click.option(
    "--baseline", metavar="T..T", help="compare with this stretch [as long, right before it]"
)
@click.option("--cpu", type=click.IntRange(min=0), metavar="N", help="stacks and modes of one core")
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(
    source: Path,
    at: str | None,
    around: str | None,
    start: str | None,
    end: str | None,
    baseline: str | None,
    cpu: int | None,
    as_json: bool,
) -> None:
    """What changed: cores, programs, paths, pressure and rates of a stretch of time against the one
    before it, and events that only it has.

    It compares, and names no cause: `necroscope diagnose` does.

    \b
    Examples:
      necroscope changes                                  the last minute against the one before
      necroscope changes D --at 10:30:07
      necroscope changes D --from 10:30 --to 10:35 --baseline 09:30..09:35 --cpu 39
    """
    if not (at or start):
        start = f"-{_AROUND}"
    words = WindowWords(start, end, at, around or (_AROUND if at else None), baseline)
    with opened_recording(source, *words.reach()) as (store, import_notes):
        windows = words.within(store.span())
        notes = [*import_notes, *windows.outside(store.span())]
        found = window_changes(store, windows.window, _baseline(windows, store.span()), cpu)
    click.echo(json.dumps(found.as_json()) if as_json else window_changes_to_text(found))
    for note in notes:
        click.echo(f"note: {note}", err=True)


def _baseline(windows: Windows, span: Extent) -> Span:
    if windows.baseline is not None:
        return windows.baseline
    window = windows.window
    before = Span(max(window.from_ns - window.length_ns, span[0]), window.from_ns)
    if before.length_ns <= 0:
        raise UsageError(
            "nothing is recorded before this stretch", "give another stretch as --baseline T..T"
        )
    if before.length_ns < window.length_ns:
        click.echo(f"note: only {before.length} are recorded before it", err=True)
    return before
