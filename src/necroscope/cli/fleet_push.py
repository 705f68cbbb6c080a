"""`necroscope fleet push`: a recording to a collector, once or as it grows."""

import contextlib
import json
import os
from pathlib import Path
from typing import Final

import click
import pyarrow as pa

from necroscope.cli.end_signals import IsOver, until_end_signal
from necroscope.cli.secret_file import reading_warning
from necroscope.errors import CorruptData, NecroscopeError, RecordingError, UsageError
from necroscope.model.allocator import give_memory_back
from necroscope.model.names import clean
from necroscope.model.units import format_bytes, parse_bytes
from necroscope.outlets.push.batches import safe_name
from necroscope.outlets.push.delivery import Delivery
from necroscope.outlets.push.labels import NODE_VARIABLE, collect_labels
from necroscope.outlets.push.push import Pusher
from necroscope.outlets.push.push_state import PushState
from necroscope.outlets.push.sender import Sender
from necroscope.outlets.push.spool import DEFAULT_BYTES, Spool
from necroscope.segment.recording import RECORDING_FILE, read_identity
from necroscope.store.query import Store

_SPOOL: Final = ".push"
_LOOK_S: Final = 5.0
_LEAST_BYTES: Final = 4 << 20
_NICE: Final = 10
_FINISH_S: Final = 10.0


@click.command("push")
@click.argument("recording", type=click.Path(path_type=Path, readable=False), metavar="DIR")
@click.option(
    "--to",
    "url",
    required=True,
    metavar="URL",
    help="the collector, for example https://collector:7443",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="F",
    help="file with the token; read again for each request",
)
@click.option(
    "--ca-file",
    type=click.Path(path_type=Path),
    metavar="F",
    help="certificates to trust, PEM [the system's]",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="label of this node, may be repeated",
)
@click.option(
    "--labels-file",
    type=click.Path(path_type=Path),
    metavar="F",
    help="key=value lines, or a downward API volume",
)
@click.option(
    "--node",
    metavar="NAME",
    help="the node's name [of the recording; with --follow $NODE_NAME if set]",
)
@click.option(
    "--follow", is_flag=True, help="keep running and push what is recorded, until Ctrl-C or SIGTERM"
)
@click.option(
    "--spool",
    "spool_directory",
    type=click.Path(path_type=Path),
    metavar="D",
    help="where batches wait [DIR/.push]",
)
@click.option(
    "--spool-bytes",
    default=str(DEFAULT_BYTES),
    metavar="BYTES",
    help="size of the spool [256MiB]; when it is full the oldest batches go",
)
@click.option("--json", "as_json", is_flag=True, help="what was pushed, as JSON")
@click.option(
    "--while-stdin",
    is_flag=True,
    hidden=True,
    help="end when standard input closes: the process that started us has gone",
)
def command(
    recording: Path,
    url: str,
    token_file: Path | None,
    ca_file: Path | None,
    labels: tuple[str, ...],
    labels_file: Path | None,
    node: str | None,
    follow: bool,
    spool_directory: Path | None,
    spool_bytes: str,
    as_json: bool,
    while_stdin: bool,
) -> None:
    """Push a recording: events, facts, a summary of each minute, verdicts and their evidence; not
    the recording itself.

    What was pushed is remembered: run again, it goes on where it stopped. What a collector cannot
    take now waits in a spool.

    \b
    Examples:
      necroscope fleet push D --to https://collector:7443 --token-file /etc/token --follow
      necroscope fleet push D --to http://127.0.0.1:7443 --token-file token --label zone=a --json
    """
    _stay_small()
    sender, bound_bytes = Sender(url, token_file, ca_file), _bound(spool_bytes)
    _warn_of_readers(sender, token_file)
    with (
        until_end_signal(while_stdin=while_stdin) if follow else contextlib.nullcontext() as is_over
    ):
        if is_over is not None and not _comes(recording, is_over):
            return
        spool = Spool(spool_directory or _inside(recording), bound_bytes)
        state = PushState(spool, url, _warn)
        name, known = _name_node(recording, node, follow=follow)
        chosen, notes = collect_labels(known, os.environ, labels_file, labels)
        for note in notes:
            _warn(note)
        delivery = Delivery(state, sender, _warn)
        ask = _ask_recorder if while_stdin else _ask_nobody
        pusher = Pusher(recording, state, delivery, name, chosen, keep_window=ask)
        try:
            is_whole = _follow(pusher, is_over) if is_over is not None else pusher.push_all()
        finally:
            pusher.close()
            spool.close()
    _report(pusher, delivery, state, name, as_json=as_json)
    if not is_whole:
        raise _incomplete(delivery, spool)


def _ask_recorder(line: str) -> None:
    """The recorder that started us reads our standard output line by line."""
    with contextlib.suppress(OSError):
        os.write(1, f"{line}\n".encode("ascii"))


def _ask_nobody(_: str) -> None:
    """The command's user keeps what they like."""


def _incomplete(delivery: Delivery, spool: Spool) -> NecroscopeError:
    said = delivery.last_answer.text if delivery.last_answer else "the collector did not answer"
    waiting = f"{delivery.waiting} batches wait in {spool.directory}"
    return NecroscopeError(
        f"not all was pushed: {said}", f"{waiting}: run it again, and it goes on from there"
    )


def _warn_of_readers(sender: Sender, token_file: Path | None) -> None:
    if sender.is_open_to_all:
        _warn("the token travels in the clear; use https")
    if token_file is not None and (warning := reading_warning(token_file)):
        _warn(warning)


def _bound(text: str) -> int:
    size_bytes = parse_bytes(text)
    if size_bytes < _LEAST_BYTES:
        raise UsageError(
            f"a spool of {text} is too small", f"give it at least {format_bytes(_LEAST_BYTES)}"
        )
    return size_bytes


def _inside(recording: Path) -> Path:
    if not recording.is_dir():
        raise RecordingError(
            f"there is no directory {recording}",
            "name a directory that `necroscope record --dir` made",
        )
    with contextlib.suppress(CorruptData):
        read_identity(recording)
    return recording / _SPOOL


def _name_node(recording: Path, node: str | None, *, follow: bool) -> tuple[str, dict[str, str]]:
    """In a pod the host's name is another than the node's."""
    store = Store.open(recording)
    known = store.catalog.identity
    named = (
        node
        or (os.environ.get(NODE_VARIABLE) if follow else None)
        or (known.node if known else store.info().node)
    )
    return safe_name(named), dict(known.labels) if known else {}


def _comes(recording: Path, is_over: IsOver) -> bool:
    """Who follows may be started before the recorder is; False if it is told to end before there is
    a recording.
    """
    if not (recording / RECORDING_FILE).exists():
        _warn(f"{recording} holds no recording yet; waiting for one")
    while not (recording / RECORDING_FILE).exists():
        if is_over(_LOOK_S):
            return False
    return True


def _follow(pusher: Pusher, is_over: IsOver) -> bool:
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    wait_s = 0.0
    while not is_over(wait_s):
        wait_s = pusher.turn()
    pusher.finish(_FINISH_S)
    return True


def _stay_small() -> None:
    """This lives on a user's node for weeks: memory goes back when it is free, and nothing is worth
    a thread.
    """
    give_memory_back()
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _warn(text: str) -> None:
    # A lost listener is not a reason to end.
    with contextlib.suppress(OSError):
        click.echo(clean(f"warning: {text}", 1000), err=True)


def _report(
    pusher: Pusher, delivery: Delivery, state: PushState, node: str, *, as_json: bool
) -> None:
    done = delivery.delivered
    facts = {
        "node": node,
        "batches": done.batches,
        "bundles": done.bundles,
        "bytes": done.bytes,
        "rows": dict(sorted(pusher.rows.items())),
        "refused": done.refused,
        "dropped": state.dropped,
        "waiting": delivery.waiting,
    }
    if as_json:
        click.echo(json.dumps(facts))
        return
    rows = sum(pusher.rows.values())
    waiting = f", {delivery.waiting} wait" if delivery.waiting else ""
    refused = f", {done.refused} refused" if done.refused else ""
    click.echo(
        f"{node}: {rows:,} rows, {done.batches} batches and {done.bundles} bundles of evidence"
        f" in {format_bytes(done.bytes)}{waiting}{refused}"
    )
