"""`necroscope mcp`: recordings and a fleet for assistants, by the Model Context Protocol."""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from necroscope import __version__
from necroscope.cli.fleet_asking import AnswerSource, with_source
from necroscope.cli.listener import listener_on
from necroscope.cli.recording_place import find_recording
from necroscope.cli.secret_file import read_token
from necroscope.cli.view import address_of, own_hosts
from necroscope.errors import UsageError
from necroscope.outlets.mcp.questions import RecordingQuestions
from necroscope.views.web.guard import Guard

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer


@click.command()
@click.argument("directories", nargs=-1, type=click.Path(path_type=Path), metavar="[DIR]...")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="serve HTTP there, with a token, instead of standard input and output",
)
@click.option(
    "--http-token-file",
    type=click.Path(path_type=Path),
    metavar="F",
    help="the token that HTTP clients must send [a new one, printed]",
)
@with_source
def command(
    directories: tuple[Path, ...],
    listen: str | None,
    http_token_file: Path | None,
    source: AnswerSource,
) -> None:
    """Answer assistants (Model Context Protocol): incidents, verdicts with their evidence, rows,
    flame graphs and differences of these recordings, and fleet questions.

    Everything is read-only and bounded. Without --listen it talks on standard input and output, as
    clients that start it expect. Recordings are only those given here; without any, that of the
    recorder which runs. With --lake or --url fleets can be asked too.

    \b
    Examples:
      necroscope mcp /var/lib/necroscope
      necroscope mcp --lake /var/lib/necroscope-lake
      necroscope mcp /var/lib/necroscope --listen 127.0.0.1:7455
    """
    # The extra `mcp`.
    from necroscope.outlets.mcp.server import make_server  # noqa: PLC0415

    has_fleet = source.lake is not None or source.url is not None
    if not directories and not has_fleet:
        directories = (find_recording(),)
    server = make_server(
        RecordingQuestions(_name_recordings(directories)),
        source.ask if has_fleet else None,
        __version__,
    )
    if listen is None:
        server.run("stdio")
    else:
        _serve(server, listen, http_token_file)


def _name_recordings(directories: tuple[Path, ...]) -> dict[str, Path]:
    """By the last part of the path, or by all of it where two are called the same."""
    for directory in directories:
        if not directory.is_dir():
            raise UsageError(f"there is no directory {directory}", "name directories of recordings")
    names = [directory.resolve().name for directory in directories]
    return {
        name if names.count(name) == 1 else str(directory.resolve()): directory.resolve()
        for name, directory in zip(names, directories, strict=True)
    }


def _serve(server: "MCPServer[Any]", listen: str, token_file: Path | None) -> None:
    import uvicorn  # noqa: PLC0415 - loaded only where it serves
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415

    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"{listen!r} is not a valid address", "write it as 127.0.0.1:7455")
    token = (
        secrets.token_urlsafe(24)
        if token_file is None
        else read_token(token_file, "--http-token-file")
    )
    listener = listener_on(host, int(port))
    address = address_of(host, listener.getsockname()[1])
    click.echo(f"answering at {address}mcp", err=True)
    if token_file is None:
        click.echo(f"clients send the header: Authorization: Bearer {token}", err=True)
    # Host and Origin are the guard's to check, together with the token.
    app = server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    guarded = Guard(app, token, own_hosts(host), printed_by="necroscope mcp")
    config = uvicorn.Config(guarded, log_level="warning", access_log=False)
    uvicorn.Server(config).run([listener])
