"""`necroscope fleet incidents`: what happened on all nodes."""

import click

from necroscope.cli.fleet_asking import AnswerSource, show, with_limit, with_source, with_span
from necroscope.views.fleet.answers import incidents_to_text


@click.command("incidents")
@click.option("--where", metavar="EXPR", help="only of these nodes")
@click.option("--cause", metavar="SLUG", help="only of this cause")
@with_limit
@with_span("-7d")
@with_source
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(
    where: str | None,
    cause: str | None,
    limit: int,
    since: str | None,
    until: str | None,
    source: AnswerSource,
    as_json: bool,
) -> None:
    """Incidents with their causes, newest first, and how many there are of each cause.

    \b
    Examples:
      necroscope fleet incidents --lake L
      necroscope fleet incidents --cause zombie-memcg-walk --where zone=a --since -30d --lake L
    """
    words = {"where": where, "cause": cause, "limit": str(limit), "since": since, "until": until}
    show(source.ask("incidents", words), incidents_to_text, as_json=as_json)
