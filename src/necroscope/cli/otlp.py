"""`necroscope otlp`: a recording as it grows, to an OpenTelemetry collector."""

import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Final

import click

from necroscope.cli.recording_place import recording_argument
from necroscope.cli.secret_file import reading_warning
from necroscope.errors import UsageError
from necroscope.fleet.request import Endpoint
from necroscope.model.names import clean
from necroscope.model.units import NS_PER_S, parse_duration_ns, parse_moment_ns
from necroscope.outlets.otlp.exporter import OtlpExporter
from necroscope.store.query import Store

_MOST_HEADER_BYTES: Final = 64 * 1024
# Rows of the last seconds are still on their way to the journal.
_SETTLED_NS: Final = 5 * NS_PER_S


@click.command()
@recording_argument("directory", "[DIR]")
@click.option("--to", "url", required=True, metavar="URL", help="the collector: http://host:4318")
@click.option(
    "--header-file",
    type=click.Path(path_type=Path),
    metavar="F",
    help="lines `Name: value` to send with each request, for example Authorization",
)
@click.option(
    "--ca-file",
    type=click.Path(path_type=Path),
    metavar="F",
    help="certificates to trust, PEM [the system's]",
)
@click.option("--every", default="15s", metavar="T", help="how often to send [15s]")
@click.option("--since", metavar="T", help="begin there: ISO 8601, or -5m before the end [now]")
@click.option("--no-profiles", is_flag=True, help="send events and incidents only")
@click.option("--once", is_flag=True, help="send what there is and end; exit 1 if it was refused")
def command(
    directory: Path,
    url: str,
    header_file: Path | None,
    ca_file: Path | None,
    every: str,
    since: str | None,
    no_profiles: bool,
    once: bool,
) -> None:
    """Follow a recording and send stacks (profiles), events and incidents (logs) to a collector, by
    OTLP over HTTP.

    What the collector refuses is sent again for ten minutes. Ctrl-C ends it.

    \b
    Examples:
      necroscope otlp --to http://127.0.0.1:4318
      necroscope otlp D --to https://otel.example --header-file headers --every 30s
      necroscope otlp D --to http://127.0.0.1:4318 --since -1h --once
    """
    every_ns = parse_duration_ns(every)
    if every_ns < NS_PER_S:
        raise UsageError(f"--every {every} is too often", "choose one second or more")
    endpoint = Endpoint.parse(url, ca_file)
    store = Store.open(directory)
    first_ns, last_ns = store.span()
    from_ns = last_ns if since is None else max(first_ns, parse_moment_ns(since, last_ns))
    exporter = OtlpExporter(
        store, endpoint, lambda: _headers(header_file), from_ns, _say, profiles=not no_profiles
    )
    signal.signal(signal.SIGTERM, _leave)
    if once:
        sys.exit(0 if exporter.turn(last_ns + 1) else 1)
    _follow(exporter, every_ns)


def _follow(exporter: OtlpExporter, every_ns: int) -> None:
    click.echo("following; Ctrl-C ends it", err=True)
    try:
        while True:
            exporter.turn(time.time_ns() - _SETTLED_NS)
            time.sleep(every_ns / NS_PER_S)
    except KeyboardInterrupt:
        click.echo("", err=True)


def _headers(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        text = path.read_bytes()[:_MOST_HEADER_BYTES].decode("ascii")
    except (OSError, UnicodeDecodeError):
        raise UsageError(
            f"cannot read headers from {path}", "write one `Name: value` per line, in ASCII"
        ) from None
    if warning := reading_warning(path):
        _say(f"warning: {warning}")
    headers = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = line.partition(":")
        if not colon or not name.replace("-", "").isalnum():
            raise UsageError(f"{path} has a line that is not a header", "write it as `Name: value`")
        headers[name] = value.strip()
    return headers


def _say(text: str) -> None:
    click.echo(clean(text, 1000), err=True)


def _leave(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)
