"""`necroscope fleet next`: which nodes will be hit next."""

import click

from necroscope.cli.fleet_asking import AnswerSource, show, with_failure, with_source, with_span
from necroscope.views.fleet.next import next_to_text


@click.command("next")
@with_failure
@click.option("--where", metavar="EXPR", help="explain it among these nodes only")
@with_span("-30d")
@with_source
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(
    event: str | None,
    cause: str | None,
    where: str | None,
    since: str | None,
    until: str | None,
    source: AnswerSource,
    as_json: bool,
) -> None:
    """Which nodes carry what `fleet why` names and are not hit yet: how much they have, and when
    they reach the threshold.

    Also the nodes on which the harmful unit is enabled and was never started, and what holds it
    back there.

    \b
    Examples:
      necroscope fleet next --event nic_reset --lake /var/lib/necroscope-lake
      necroscope fleet next --cause zombie-memcg-walk --url https://collector:7443 --token-file T
    """
    words = {"event": event, "cause": cause, "where": where, "since": since, "until": until}
    show(source.ask("next", words), next_to_text, as_json=as_json)
