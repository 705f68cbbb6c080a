"""`necroscope notify`: announces new incidents of a recording to a webhook and to Kubernetes."""

import os
import random
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
from necroscope.model.units import NS_PER_S, parse_duration_ns
from necroscope.outlets.notify.kubernetes import CREDENTIALS, Kubernetes
from necroscope.outlets.notify.notifier import Channel, Notifier
from necroscope.outlets.notify.webhook import Webhook, read_secret
from necroscope.segment.recording import Identity, read_identity
from necroscope.verdicts.ledger import Ledger
from necroscope.verdicts.ledger_writer import is_kept

_NOTEBOOK: Final = ".notify.json"


@click.command()
@recording_argument("directory", "[DIR]")
@click.option(
    "--webhook",
    metavar="URL",
    envvar="NECROSCOPE_WEBHOOK",
    help="POST each incident there [$NECROSCOPE_WEBHOOK]",
)
@click.option(
    "--webhook-secret-file",
    type=click.Path(path_type=Path),
    metavar="F",
    help="sign with the secret in this file",
)
@click.option(
    "--webhook-ca-file",
    type=click.Path(path_type=Path),
    metavar="F",
    help="trust these certificates, in place of the system's",
)
@click.option(
    "--kubernetes",
    "to_kubernetes",
    is_flag=True,
    help="set the node's condition CoreStarved, and make an Event of each incident",
)
@click.option(
    "--node-name",
    metavar="N",
    envvar="NODE_NAME",
    help="the node's name in Kubernetes [$NODE_NAME, else the recording's]",
)
@click.option("--kubernetes-api", metavar="URL", help="the API server [from the pod's environment]")
@click.option(
    "--kubernetes-credentials",
    type=click.Path(path_type=Path),
    default=CREDENTIALS,
    metavar="D",
    help="directory of token and ca.crt [the pod's service account]",
)
@click.option(
    "--clear-after",
    default="10m",
    metavar="T",
    help="how long after the last incident the condition becomes false [10m]",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    metavar="F",
    help=f"what was announced, and what waits [DIR/{_NOTEBOOK}]",
)
@click.option(
    "--once", is_flag=True, help="announce once and end; exit 1 if something could not be delivered"
)
def command(
    directory: Path,
    webhook: str | None,
    webhook_secret_file: Path | None,
    webhook_ca_file: Path | None,
    to_kubernetes: bool,
    node_name: str | None,
    kubernetes_api: str | None,
    kubernetes_credentials: Path,
    clear_after: str,
    state: Path | None,
    once: bool,
) -> None:
    """Follow a live recording and announce each new incident: when it is over, or has gone on for
    12 s and again when it is over.

    What could not be delivered is kept through restarts and tried again for a day. A webhook gets
    what `diagnose --json` says of the incident, signed; Kubernetes gets a condition of the node and
    an Event. Ctrl-C ends it.

    \b
    Examples:
      necroscope notify D --webhook https://alerts.example/hook --webhook-secret-file secret
      necroscope notify /recording --kubernetes                  in a pod of the DaemonSet
      necroscope notify D --webhook http://127.0.0.1:8080/ --once
    """
    # What was sent names processes and cgroups, as the recording does.
    os.umask(0o077)
    identity = read_identity(directory)
    channels: list[Channel] = []
    if webhook:
        channels.append(_webhook(identity, webhook, webhook_secret_file, webhook_ca_file))
    if to_kubernetes:
        channels.append(_kubernetes(identity, node_name, kubernetes_api, kubernetes_credentials))
    if not channels:
        raise UsageError("there is no channel to notify", "give --webhook URL or --kubernetes")
    notifier = Notifier(
        _ledger(directory, once=once),
        channels,
        state or directory / _NOTEBOOK,
        _say,
        random.random,
        parse_duration_ns(clear_after),
    )
    signal.signal(signal.SIGTERM, _leave)
    if once:
        notifier.turn(time.time_ns())
        sys.exit(1 if notifier.undelivered else 0)
    _follow(notifier)


def _ledger(directory: Path, *, once: bool) -> Ledger:
    """With --once a recording that no process judges is judged here."""
    if once:
        from necroscope.verdicts.reading import current_ledger  # noqa: PLC0415 - it loads the analysis

        return current_ledger(directory)
    if not is_kept(directory):
        _say("warning: no process judges this recording: is it recorded, and with --verdicts on?")
    return Ledger.open(directory)


def _webhook(
    identity: Identity, url: str, secret_file: Path | None, ca_file: Path | None
) -> Webhook:
    if secret_file is not None:
        read_secret(secret_file)
        if warning := reading_warning(secret_file):
            _say(f"warning: {warning}")
    return Webhook(Endpoint.parse(url, ca_file), secret_file, identity.node, identity.labels)


def _kubernetes(
    identity: Identity, node_name: str | None, api: str | None, credentials: Path
) -> Kubernetes:
    return Kubernetes.in_pod(node_name or identity.node, api, credentials)


def _follow(notifier: Notifier) -> None:
    click.echo("following; Ctrl-C ends it", err=True)
    try:
        while True:
            again_ns = notifier.turn(time.time_ns())
            time.sleep(max(0.1, (again_ns - time.time_ns()) / NS_PER_S))
    except KeyboardInterrupt:
        click.echo("", err=True)


def _say(text: str) -> None:
    click.echo(clean(text, 1000), err=True)


def _leave(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)
