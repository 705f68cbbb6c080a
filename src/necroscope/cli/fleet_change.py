"""`necroscope fleet change`: did it help?"""

import click

from necroscope.cli.fleet_asking import AnswerSource, show, with_source, with_span
from necroscope.views.fleet.answers import change_to_text


@click.command("change")
@click.option(
    "--fact",
    required=True,
    metavar="FACT",
    help="kind:name=value as it became, or label=value; the value may hold *",
)
@click.option("--event", metavar="KIND", help="count this event before and after")
@click.option("--cause", metavar="SLUG", help="or incidents of this cause")
@with_span("-30d")
@with_source
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(
    fact: str,
    event: str | None,
    cause: str | None,
    since: str | None,
    until: str | None,
    source: AnswerSource,
    as_json: bool,
) -> None:
    """How often something happened before and after a fact changed, with its interval, and how
    units and Ray jobs ended. Numbers that nodes push (dead cgroups, slab, ...) are compared too.

    Each node is compared with itself; nodes that did not change show what would have
    happened anyway.

    \b
    Examples:
      necroscope fleet change --fact unit_file:ecs-agent.service=disabled --event nic_reset --lake L
      necroscope fleet change --fact image=v42 --cause zombie-memcg-walk --since -14d --lake L
    """
    words = {"fact": fact, "event": event, "cause": cause, "since": since, "until": until}
    show(source.ask("change", words), change_to_text, as_json=as_json)
