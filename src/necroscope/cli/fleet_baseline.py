"""`necroscope fleet baseline`: what runs on the nodes that no one asked for."""

from pathlib import Path

import click

from necroscope.cli.difference_gate import read_text
from necroscope.cli.fleet_asking import AnswerSource, show, with_source, with_span
from necroscope.views.fleet.baseline import baseline_to_text


@click.command("baseline")
@click.option("--where", metavar="EXPR", help="only these nodes: 'zone=a and image=v42'")
@click.option(
    "--expected",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="what is asked for: lines of kind:name, with * and ? [all but the vendor's presets]",
)
@with_span("-7d")
@with_source
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(
    where: str | None,
    expected: Path | None,
    since: str | None,
    until: str | None,
    source: AnswerSource,
    as_json: bool,
) -> None:
    """What runs here that no one asked for, which units never succeed anywhere, and how often the
    others do.

    Units that only the vendor's preset enables count as not asked for; with --expected, so does any
    unit, image or executable that the file does not name.

    \b
    Examples:
      necroscope fleet baseline --lake L
      necroscope fleet baseline --where image=node-2026-10 --expected wanted.txt --lake L
    """
    words = {"where": where, "since": since, "until": until}
    words["expected"] = None if expected is None else read_text(expected) or "#"
    show(source.ask("baseline", words), baseline_to_text, as_json=as_json)
