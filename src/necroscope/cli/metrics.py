"""`necroscope metrics`: a recording as Prometheus metrics, for a scraper on this node."""

import time
from pathlib import Path
from typing import Final

import click

from necroscope import __version__
from necroscope.analysis.causes import all_causes
from necroscope.cli.recording_place import recording_argument
from necroscope.errors import RecordingError, UsageError
from necroscope.model.units import parse_duration_ns
from necroscope.outlets.metrics_server import MetricsServer
from necroscope.segment.lock import is_recorded
from necroscope.store.query import Store
from necroscope.verdicts.entry import IncidentState, LedgerEntry
from necroscope.views.prometheus.node_metrics import NodeMetrics

_LISTEN: Final = "127.0.0.1:9419"


@click.command()
@recording_argument("directory", "[DIR]")
@click.option(
    "--listen",
    default=_LISTEN,
    metavar="HOST:PORT",
    help=f"where to serve /metrics [{_LISTEN}]; has no password",
)
@click.option("--once", is_flag=True, help="print them and end; counters cover the time of --since")
@click.option(
    "--since",
    default="1h",
    metavar="T",
    help="with --once: count what happened in this time before the end [1h]",
)
@click.option("--no-verdicts", is_flag=True, help="do not count incidents by their cause")
def command(directory: Path, listen: str, once: bool, since: str, no_verdicts: bool) -> None:
    """Worst-core figures and histograms, softirq delays, zombie cgroups, events, gaps, verdicts,
    and what the recorder costs.

    A live recording is followed; each scrape reads only what came since the last. No series per
    core: a core is a value, never a label. Counters begin at the start of this process. Ctrl-C ends
    it.

    \b
    Examples:
      necroscope metrics /var/lib/necroscope
      necroscope metrics /var/lib/necroscope --listen 0.0.0.0:9419
      necroscope metrics D --once --since 24h | grep incidents
    """
    host, port = parse_listen(listen)
    since_ns = parse_duration_ns(since)
    store = Store.open(directory)
    if once:
        click.echo(_at_once(store, since_ns, with_verdicts=not no_verdicts), nl=False)
        return
    metrics = NodeMetrics(store, _end_ns(store, time.time_ns()), __version__, _causes())
    with MetricsServer((host, port), metrics, directory, with_verdicts=not no_verdicts) as server:
        click.echo(
            f"metrics are at http://{host}:{server.server_address[1]}/metrics\nCtrl-C ends it",
            err=True,
        )
        server.run()


def parse_listen(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            f"{text!r} is not an address to listen on",
            f"write it as {_LISTEN}, or 0.0.0.0:9419 for all interfaces",
        )
    return host.strip("[]"), int(port)


def _at_once(store: Store, since_ns: int, *, with_verdicts: bool) -> str:
    from necroscope.verdicts.reading import read_report  # noqa: PLC0415 - it loads the analysis

    first_ns, last_ns = store.span()
    from_ns = max(first_ns, last_ns - since_ns)
    metrics = NodeMetrics(store, from_ns, __version__, _causes())
    metrics.look(time.time_ns(), is_recorded=is_recorded(store.catalog.directory))
    if with_verdicts:
        for one in read_report(store, from_ns).wrong:
            metrics.verdicts.take(LedgerEntry(IncidentState.CLOSED, 0, one))
    return metrics.text()


def _end_ns(store: Store, now_ns: int) -> int:
    """Where the recording ends now; of one that is still empty everything is new."""
    try:
        return store.span()[1] + 1
    except RecordingError:
        return now_ns


def _causes() -> list[str]:
    return [cause.slug for cause in all_causes()]
