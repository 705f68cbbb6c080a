"""`necroscope view`: the time machine in the browser."""

import contextlib
import io
import secrets
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from necroscope import __version__
from necroscope.analysis.engine import diagnose
from necroscope.cli.browser import opened_in_browser
from necroscope.cli.listener import listener_on
from necroscope.cli.opened_recording import opened_recording
from necroscope.cli.output_file import output_file
from necroscope.cli.page_file import page_file, page_report
from necroscope.cli.recording_place import recording_argument
from necroscope.cli.secret_file import read_token
from necroscope.interchange.writers.speedscope import write_speedscope
from necroscope.interchange.writers.window import WindowFacts
from necroscope.model.span import Span
from necroscope.store.query import Store
from necroscope.store.samples import read_samples
from necroscope.store.selection import Selection
from necroscope.verdicts.reading import read_report
from necroscope.views.web.export import check_built

if TYPE_CHECKING:
    from necroscope.views.web.app import ServedRecording

_LOOPBACK: Final = "127.0.0.1"
_EVERYWHERE: Final = ("0.0.0.0", "::")

_SWITCH_S: Final = 0.0005


@click.command()
@recording_argument("source")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="port to listen on [any that is free]",
)
@click.option(
    "--host",
    default=_LOOPBACK,
    metavar="H",
    help="address to listen on; anything but loopback is open to the network",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="F",
    help="the token that clients such as Grafana must send [a new one, printed]",
)
@click.option("--no-browser", is_flag=True, help="print the address, open nothing")
@click.option(
    "--export",
    "file",
    type=click.Path(path_type=Path),
    metavar="F",
    help="write the page around all incidents to this one file instead, and serve nothing",
)
def command(
    source: Path,
    port: int,
    host: str,
    token_file: Path | None,
    no_browser: bool,
    file: Path | None,
) -> None:
    """The time machine: every core, event, flame graph and verdict of a recording on one page, from
    weeks to microseconds.

    Serves on loopback; the address holds a token without which nothing is answered. A live
    recording is followed. Ctrl-C ends it.

    \b
    Examples:
      necroscope view /var/lib/necroscope
      necroscope view D --port 8080 --no-browser   then: ssh -L 8080:localhost:8080 node
      necroscope view perf.data
      necroscope view D --export incident.html     one file that opens offline, to send or to keep
    """
    if file is not None:
        check_built()
    token = None if token_file is None else read_token(token_file, "--token-file")
    with opened_recording(source, None, None) as (store, notes):
        store.span()
        for note in notes:
            click.echo(f"note: {note}", err=True)
        if file is None:
            serve(store, host, port, opens_browser=not no_browser, token=token)
            return
        with output_file(file) as out:
            out.write(page_file(store, read_report(store)))


def serve(
    store: Store, host: str, port: int, *, opens_browser: bool, token: str | None = None
) -> None:
    """Blocks until interrupted. A `token` that the caller knows is not printed."""
    import uvicorn  # noqa: PLC0415 - the server is loaded only where it serves

    from necroscope.views.web.app import make_app  # noqa: PLC0415

    listener = listener_on(host, port)
    once = secrets.token_urlsafe(24)
    address = address_of(host, listener.getsockname()[1])
    shown = address
    if token is None:
        token = secrets.token_urlsafe(24)
        shown = f"{address}?token={token}"
    click.echo(f"the time machine is at {shown}\nCtrl-C ends it")
    app = make_app(recording_of(store), token, own_hosts(host), once=once)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    # Answers are made in threads. By default each holds the interpreter for 5 ms at a time, several
    # times per answer, while the loop waits to send another one.
    sys.setswitchinterval(_SWITCH_S)
    with contextlib.ExitStack() as stack:
        if opens_browser:
            stack.enter_context(opened_in_browser(f"{address}?once={once}"))
        # The server ends well on Ctrl-C, and then raises it once more.
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        uvicorn.Server(config).run([listener])


def address_of(host: str, port: int) -> str:
    return f"http://{_bracketed(host)}:{port}/"


def own_hosts(host: str) -> frozenset[str]:
    """Names under which we may be asked; on all addresses also the machine's own. Addresses the
    guard sees by itself.
    """
    names = {socket.gethostname(), socket.getfqdn()} if host in _EVERYWHERE else set()
    return frozenset(
        name.lower() for name in ("localhost", _LOOPBACK, "[::1]", _bracketed(host), *names)
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def recording_of(store: Store) -> "ServedRecording":
    """A recording to show, joined with what diagnoses and exports it."""
    # The server is loaded only where it serves.
    from necroscope.views.web.app import ServedRecording  # noqa: PLC0415

    return ServedRecording(store, __version__, diagnosed, _speedscope)


def diagnosed(directory: Path, at_ns: int | None, span: Span | None) -> dict[str, Any]:
    """`diagnose --json` with moments in ns and the causes in words; runs in a process of its own
    for a long recording.
    """
    store = Store.open(directory)
    if at_ns is None and span is None:
        return page_report(read_report(store))
    return page_report(diagnose(store, at_ns, span))


def _speedscope(store: Store, from_ns: int, to_ns: int, selection: Selection) -> bytes:
    found = read_samples(store, from_ns, to_ns, selection)
    identity = store.catalog.identity
    facts = WindowFacts(
        identity.node if identity else "unknown node",
        found.from_ns,
        found.to_ns,
        left_out=tuple(found.left_out),
    )
    out = io.BytesIO()
    write_speedscope(found.tables, facts, out)
    return out.getvalue()
