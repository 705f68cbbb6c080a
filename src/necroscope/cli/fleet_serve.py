"""`necroscope fleet serve`: the collector."""

import contextlib
import ipaddress
import ssl
import sys
import time
from pathlib import Path
from typing import Final

import click

from necroscope.cli.fleet_asking import with_lake
from necroscope.cli.listener import listener_on
from necroscope.errors import UsageError
from necroscope.fleet.lake import Lake
from necroscope.fleet.limits import Limits
from necroscope.fleet.tokens import TokenFile
from necroscope.model.units import NS_PER_S, format_moment, parse_bytes, parse_duration_ns

_LOOPBACK: Final = "127.0.0.1"
_FREE_FLOOR_BYTES: Final = 1 << 30


@click.command("serve")
@with_lake
@click.option(
    "--tokens",
    "tokens_file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="file of the tokens that may push or read",
)
@click.option(
    "--host", default=_LOOPBACK, show_default=True, metavar="H", help="address to listen on"
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=7443,
    show_default=True,
    metavar="N",
    help="port to listen on; 0: any that is free",
)
@click.option(
    "--tls-cert", type=click.Path(path_type=Path), metavar="FILE", help="certificate chain (PEM)"
)
@click.option(
    "--tls-key", type=click.Path(path_type=Path), metavar="FILE", help="its private key (PEM)"
)
@click.option(
    "--insecure",
    is_flag=True,
    help="listen on a public address without TLS: tokens can be read on the way",
)
@click.option(
    "--commit-every",
    default="250ms",
    show_default=True,
    metavar="DURATION",
    help="how long a push waits for others",
)
@click.option(
    "--compact-every",
    default="10s",
    show_default=True,
    metavar="DURATION",
    help="how often pushes become tables",
)
@click.option(
    "--max-body", default="2MiB", show_default=True, metavar="BYTES", help="largest batch, as sent"
)
@click.option(
    "--max-queue",
    default="64MiB",
    show_default=True,
    metavar="BYTES",
    help="most bytes on the way to the lake; beyond that a push gets 503",
)
@click.option(
    "--node-rate",
    type=click.FloatRange(0.01, 1000),
    default=4.0,
    show_default=True,
    metavar="N",
    help="batches per second that a node may push",
)
@click.option(
    "--keep", metavar="DURATION", help="remove days that are older, except facts [keep all]"
)
@click.option(
    "--free-floor",
    metavar="BYTES",
    help="space of the lake's disk that stays free [1GiB, at most 5%]",
)
def command(
    lake_url: str,
    tokens_file: Path,
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    insecure: bool,
    commit_every: str,
    compact_every: str,
    max_body: str,
    max_queue: str,
    node_rate: float,
    keep: str | None,
    free_floor: str | None,
) -> None:
    """The collector: accepts what nodes push, and confirms it only when it is durable in the lake.

    It keeps nothing but the lake, so several may work on one behind a balancer. SIGTERM and Ctrl-C
    end it after open requests are answered.

    \b
    Examples:
      necroscope fleet serve --lake /var/lib/necroscope-lake --tokens tokens.toml
      necroscope fleet serve --lake s3://bucket/fleet --tokens t.toml --tls-cert c.pem --tls-key k
    """
    _check_address(host, tls_cert, tls_key, is_insecure=insecure)
    lake = Lake.open(lake_url)
    lake.list("inbox")
    body, queue = parse_bytes(max_body), parse_bytes(max_queue)
    options = {
        "limits": Limits(body_bytes=body, queued_bytes=queue, node_batches_per_s=node_rate),
        "commit_every_s": parse_duration_ns(commit_every) / NS_PER_S,
        "compact_every_s": parse_duration_ns(compact_every) / NS_PER_S,
        "keep_ns": parse_duration_ns(keep) if keep else None,
        "free_floor_bytes": parse_bytes(free_floor) if free_floor else _free_floor_bytes(lake),
    }
    # The server is loaded only where it serves; before its address is printed, as it may fail.
    from necroscope.cli.view import recording_of  # noqa: PLC0415
    from necroscope.fleet.collector.app import create_fleet_app  # noqa: PLC0415
    from necroscope.fleet.collector.server import serve  # noqa: PLC0415

    app = create_fleet_app(lake, TokenFile(tokens_file), recording_of, say=_say, **options)
    listener = listener_on(host, port, "choose another --host or --port")
    scheme = "https" if tls_cert else "http"
    _say(
        f"the collector is at {scheme}://{host}:{listener.getsockname()[1]}, its lake is {lake_url}"
    )
    serve(app, listener, tls_cert, tls_key, _say)
    _say("the collector has ended; everything acknowledged is in the lake")


def _check_address(
    host: str, tls_cert: Path | None, tls_key: Path | None, *, is_insecure: bool
) -> None:
    if (tls_cert is None) != (tls_key is None):
        raise UsageError("--tls-cert and --tls-key belong together")
    if tls_cert is not None and tls_key is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls_cert, tls_key)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"cannot use {tls_cert} with {tls_key}: {error}",
                "both in PEM, the certificate first of its chain",
            ) from None
    elif not _is_loopback(host) and not is_insecure:
        raise UsageError(
            f"{host} is open to the network, and without TLS anyone on the way can read the tokens",
            "give --tls-cert and --tls-key, or --insecure behind a balancer that speaks TLS",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _free_floor_bytes(lake: Lake) -> int:
    space = lake.space_bytes()
    return 0 if space is None else min(_FREE_FLOOR_BYTES, space[1] // 20)


def _say(text: str) -> None:
    # A closed log is not a reason to end.
    with contextlib.suppress(OSError):
        click.echo(f"{format_moment(time.time_ns())}  {text}", err=True, color=sys.stderr.isatty())
