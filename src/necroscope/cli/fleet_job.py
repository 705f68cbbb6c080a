"""`necroscope fleet job`: why a job died, from its last line to the core."""

import click

from necroscope.cli.fleet_asking import AnswerSource, show, with_source, with_span
from necroscope.views.fleet.jobs import job_to_text


@click.command("job")
@click.argument("job", required=False, metavar="[ID]")
@click.option("--at", metavar="T", help="the run at this moment, if there are several")
@with_span("-30d")
@with_source
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(
    job: str | None,
    at: str | None,
    since: str | None,
    until: str | None,
    source: AnswerSource,
    as_json: bool,
) -> None:
    """Why did this job die: which member stopped first, which one the others waited for, what
    happened on that node and core in those seconds, what it cost, and which other jobs the same
    cause hit.

    Without an ID: the job that failed last. An ID may be the end of one: 4711 is slurm/4711. "Not
    the machine" is an answer. Clocks of the nodes are corrected by what the collector measured.

    \b
    Examples:
      necroscope fleet job --lake L
      necroscope fleet job slurm/4711 --url https://collector:7443 --token-file token
      necroscope fleet job 4711 --at 2026-04-15T10:30 --lake L
    """
    words = {"job": job, "at": at, "since": since, "until": until}
    show(source.ask("job", words), job_to_text, as_json=as_json)
