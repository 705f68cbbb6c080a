"""`necroscope fleet diff`: how two nodes or two groups of nodes differ."""

import click

from necroscope.cli.fleet_asking import AnswerSource, show, with_source, with_span
from necroscope.views.fleet.answers import diff_to_text


@click.command("diff")
@click.argument("a")
@click.argument("b")
@click.option(
    "--all",
    "with_all",
    is_flag=True,
    help="also host names, ids, boot times and what is different on every node",
)
@with_span("-7d")
@with_source
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(
    a: str,
    b: str,
    with_all: bool,
    since: str | None,
    until: str | None,
    source: AnswerSource,
    as_json: bool,
) -> None:
    """The facts in which A and B differ, the rarest difference first. Both are names of nodes, or
    expressions.

    \b
    Examples:
      necroscope fleet diff gpu-17 gpu-18 --lake L
      necroscope fleet diff zone=a zone=b --lake L
      necroscope fleet diff event=nic_reset 'not event=nic_reset' --lake L
    """
    words = {"a": a, "b": b, "since": since, "until": until, "all": "true" if with_all else None}
    show(source.ask("diff", words), diff_to_text, as_json=as_json)
