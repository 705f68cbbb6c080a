"""`necroscope flame`: any window of a recording or capture as a flame graph, a heat map, a table,
or another viewer's format.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from necroscope.cli.flame_formats import OUTPUTS, TextStyle, check_options, chosen_format, write
from necroscope.cli.flame_options import check_question, question_of, question_options, words_of
from necroscope.cli.opened_recording import opened_recording, span_of
from necroscope.cli.output_file import output_file
from necroscope.errors import UsageError
from necroscope.views.flame.heading import literal_line

_STANDARD_OUTPUT: Final = Path("-")


@click.command()
@click.argument("source", type=click.Path(path_type=Path, readable=False), metavar="DIR|FILE")
@question_options
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(OUTPUTS)),
    help="[by the suffix of -o, else text]",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="F",
    help="a file [-, standard output]",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="functions in the text [30]")
@click.option("--json", "as_json", is_flag=True, help="the text as JSON")
def command(
    source: Path,
    format_name: str | None,
    output: Path | None,
    top: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """A window of a recording, or of a capture (perf.data, perf script text, folded), in any
    viewer's format.

    Without --from, --to and --at it is all of the recording. Times without a zone are UTC; -5m is
    five minutes before the END of the recording, not before now. What is not in the answer is told
    on standard error.

    \b
    Examples:
      necroscope flame D --at 2026-04-15T10:30:07 --cpu 3 -o core3.svg
      necroscope flame D --from -5m --baseline -60m..-5m --by name
      necroscope flame D --from -1m -o minute.png
      necroscope flame perf.data --from -10s -o end.html
      necroscope flame D --comm kubelet --format folded | flamegraph.pl > kubelet.svg
    """
    file = None if output == _STANDARD_OUTPUT else output
    name = "text" if as_json and format_name is None else chosen_format(format_name, file)
    _check_output(name, file, as_json)
    check_question(options)
    style = TextStyle(top, as_json, is_wide=file is not None or not sys.stdout.isatty())
    with opened_recording(source, *words_of(options).reach()) as (store, import_notes):
        question = question_of(options, store, span_of(store))
        check_options(name, question)
        with _output(file) as out:
            notes = write(name, question, out, style)
    for note in [*import_notes, *notes]:
        click.echo(f"note: {literal_line(note)}", err=True)


@contextmanager
def _output(file: Path | None) -> Iterator[BinaryIO]:
    if file is not None:
        with output_file(file) as out:
            yield out
        return
    out = sys.stdout.buffer
    yield out
    # Here and not at the interpreter's end, where nobody would catch that the reader has gone.
    out.flush()


def _check_output(name: str, file: Path | None, as_json: bool) -> None:
    if as_json and name != "text":
        raise UsageError(
            f"--json and {name} are two formats",
            "leave one of them away: --json is the text as JSON",
        )
    if file is None and not OUTPUTS[name].is_text and sys.stdout.isatty():
        raise UsageError(
            f"{name} is nothing for a terminal", f"give -o FILE{OUTPUTS[name].suffixes[0]}"
        )
