"""`necroscope fleet flame`: where the cores of many nodes spent their time."""

import sys
from pathlib import Path
from typing import BinaryIO, Final

import click

from necroscope.cli.fleet_asking import AnswerSource, width, with_source, with_span
from necroscope.cli.output_file import output_file
from necroscope.errors import UsageError
from necroscope.fleet.flame_files import FORMATS, write_flame

_SUFFIXES: Final = {".svg": "svg", ".html": "html", ".folded": "folded", ".txt": "text"}


@click.command("flame")
@click.option("--where", metavar="EXPR", help="of these nodes [all]")
@click.option("--baseline", metavar="EXPR", help="compared with these")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="[by the file's suffix, else text]"
)
@click.option("--json", "as_json", is_flag=True, help="as JSON: all stacks")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="F", help="write to this file"
)
@with_span("-1h")
@with_source
def command(
    where: str | None,
    baseline: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
    since: str | None,
    until: str | None,
    source: AnswerSource,
) -> None:
    """The flame graph of a group of nodes, and of affected against unaffected ones.

    \b
    Examples:
      necroscope fleet flame --where zone=a --lake L
      necroscope fleet flame --where event=nic_reset --baseline 'zone=b' -o a.html --lake L
    """
    form = "json" if as_json else form or _by_suffix(output)
    if output is None and form in ("svg", "html") and sys.stdout.isatty():
        raise UsageError(f"{form} cannot be shown in a terminal", f"give -o FILE.{form}")
    words: dict[str, str | None] = {
        "where": where,
        "baseline": baseline,
        "since": since,
        "until": until,
    }
    answer = source.ask("flame", words)
    if output is None:
        stream: BinaryIO = sys.stdout.buffer
        write_flame(answer, form, stream, width=width() if sys.stdout.isatty() else None)
        return
    with output_file(output) as out:
        write_flame(answer, form, out)
    click.echo(f"written to {output}", err=True)


def _by_suffix(output: Path | None) -> str:
    if output is None:
        return "text"
    if output.suffix not in _SUFFIXES:
        raise UsageError(
            f"the suffix of {str(output)!r} does not name a format",
            f"give --format, or one of {', '.join(_SUFFIXES)}",
        )
    return _SUFFIXES[output.suffix]
