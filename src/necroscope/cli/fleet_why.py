"""`necroscope fleet why`: which difference between the nodes goes with an event or a cause."""

import click

from necroscope.cli.fleet_asking import AnswerSource, show, with_failure, with_source, with_span
from necroscope.views.fleet.why import why_to_text


@click.command("why")
@with_failure
@click.option("--job-failed", is_flag=True, help="explain the nodes that jobs died of")
@click.option("--where", metavar="EXPR", help="only among these nodes: 'zone=a and image!=old*'")
@with_span("-30d")
@with_source
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(
    event: str | None,
    cause: str | None,
    job_failed: bool,
    where: str | None,
    since: str | None,
    until: str | None,
    source: AnswerSource,
    as_json: bool,
) -> None:
    """Which label or fact separates the affected nodes from the rest, and how sure that is.

    A place (zone, rack) is never named, only what it carries; the nodes that decide are listed.
    Where the nodes cannot decide, the answer is `cannot separate`, with the experiment that would.

    \b
    Examples:
      necroscope fleet why --event nic_reset --lake /var/lib/necroscope-lake
      necroscope fleet why --job-failed --since -14d --lake /var/lib/necroscope-lake
      necroscope fleet why --cause zombie-memcg-walk --url https://collector:7443 --token-file token
    """
    words = {"event": event, "cause": cause, "where": where, "since": since, "until": until}
    words["job_failed"] = "true" if job_failed else None
    show(source.ask("why", words), why_to_text, as_json=as_json)
