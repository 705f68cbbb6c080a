"""`necroscope fleet nodes`: who is there."""

import click

from necroscope.cli.fleet_asking import AnswerSource, show, with_source, with_span
from necroscope.views.fleet.answers import nodes_to_text


@click.command("nodes")
@click.option("--where", metavar="EXPR", help="only these: 'zone=a and event=nic_reset'")
@with_span("-7d")
@with_source
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(
    where: str | None,
    since: str | None,
    until: str | None,
    source: AnswerSource,
    as_json: bool,
) -> None:
    """The nodes: labels, last sign of life, events and incidents; those with most events first.

    \b
    Examples:
      necroscope fleet nodes --lake L
      necroscope fleet nodes --where 'zone=a and not event=nic_reset' --lake L
    """
    words = {"where": where, "since": since, "until": until}
    show(source.ask("nodes", words), nodes_to_text, as_json=as_json)
