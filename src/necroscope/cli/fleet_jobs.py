"""`necroscope fleet jobs`: jobs over nodes, how they ended, and how often they succeed."""

import click

from necroscope.cli.fleet_asking import AnswerSource, show, with_limit, with_source, with_span
from necroscope.views.fleet.jobs import jobs_to_text


@click.command("jobs")
@click.option("--where", metavar="EXPR", help="only those that ran on one of these nodes")
@click.option(
    "--by",
    metavar="NAME",
    default="kind",
    show_default=True,
    help="success by kind, cluster, node, a label, or kind:name of a fact",
)
@with_limit
@with_span("-1d")
@with_source
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(
    where: str | None,
    by: str,
    limit: int,
    since: str | None,
    until: str | None,
    source: AnswerSource,
    as_json: bool,
) -> None:
    """Jobs, newest first: how each ended and, of those that failed, whether the machine did it.

    A job counts under each value that the nodes it ran on have, with a 95 % interval.

    \b
    Examples:
      necroscope fleet jobs --lake L
      necroscope fleet jobs --by zone --since -7d --lake L
      necroscope fleet jobs --by unit_file:agent.service --where image=v2 --since -30d --lake L
    """
    words = {"where": where, "by": by, "limit": str(limit), "since": since, "until": until}
    show(source.ask("jobs", words), jobs_to_text, as_json=as_json)
