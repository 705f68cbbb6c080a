"""`necroscope fleet sweep`: the analysis over all evidence in a lake."""

import json
import time

import click

from necroscope import __version__
from necroscope.cli.fleet_asking import with_lake
from necroscope.cli.progress_bar import progress_bar
from necroscope.errors import NecroscopeError
from necroscope.fleet.lake import Lake
from necroscope.fleet.sweep import Judges, SweepResult, sweep
from necroscope.fleet.sweep_processes import Processes
from necroscope.model.units import NS_PER_S, format_duration, parse_moment_ns


@click.command("sweep")
@with_lake
@click.option(
    "--ray",
    "ray_address",
    metavar="ADDRESS",
    help="judge on this Ray cluster: auto, host:port or ray://host:port",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="at once [one per core, here or of the cluster]",
)
@click.option(
    "--since", metavar="T", help="only evidence from that day on: 2026-04-15T10:30:00Z, or -7d"
)
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME",
    help="only of this cluster; may be repeated",
)
@click.option("--again", is_flag=True, help="also what this version has judged already")
@click.option("--json", "as_json", is_flag=True, help="what came of it, as JSON")
def command(
    lake_url: str,
    ray_address: str | None,
    workers: int | None,
    since: str | None,
    clusters: tuple[str, ...],
    again: bool,
    as_json: bool,
) -> None:
    """Judge all evidence in a lake: after an upgrade, old incidents get the verdict of the new
    version.

    Verdicts go into the lake as they come. A sweep that was interrupted resumes when it is
    run again.

    \b
    Examples:
      necroscope fleet sweep --lake /var/lib/necroscope-lake
      necroscope fleet sweep --lake s3://bucket/fleet --since -30d --ray auto
    """
    lake = Lake.open(lake_url)
    judges = (
        Processes(lake_url, workers)
        if ray_address is None
        else _on_ray(ray_address, lake_url, workers)
    )
    with progress_bar() as show:
        swept = sweep(
            lake,
            judges,
            is_again=again,
            from_ns=parse_moment_ns(since, time.time_ns()) if since else None,
            clusters=clusters or None,
            progress=lambda done, of: show(f"{done:,} of {of:,} bundles", done, of),
            tell=lambda text: click.echo(text, err=True),
        )
    click.echo(json.dumps(swept.as_json(), indent=2) if as_json else _in_words(swept))
    if swept.unread:
        facts = f"{len(swept.unread)} of {swept.bundles - swept.known} bundles were not judged"
        raise NecroscopeError(facts, "run it again: it goes on with those")


def _on_ray(address: str, lake_url: str, workers: int | None) -> Judges:
    # Ray is loaded only where it is asked for.
    from necroscope.fleet.sweep_ray import RayWorkers  # noqa: PLC0415

    return RayWorkers(address, lake_url, workers)


def _in_words(swept: SweepResult) -> str:
    if not swept.bundles:
        return "there is no evidence in this lake"
    lines = [
        (
            f"{swept.bundles:,} bundles, of which {swept.known:,} were judged before by version"
            f" {__version__}"
        )
    ]
    if swept.bundles > swept.known:
        took = format_duration(round(swept.seconds * NS_PER_S))
        lines.append(f"{swept.judged:,} judged in {took}: {swept.incidents:,} incidents")
    lines += [f"  {count:6,}  {cause}" for cause, count in swept.causes.most_common()]
    if swept.changed:
        lines.append(f"{swept.changed.total():,} verdicts changed")
        lines += [
            f"  {count:6,}  {old} is now {new}" for (old, new), count in swept.changed.most_common()
        ]
    if swept.broken:
        lines.append(f"{len(swept.broken):,} are broken and were skipped")
    return "\n".join(lines)
