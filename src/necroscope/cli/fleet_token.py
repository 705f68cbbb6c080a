"""`necroscope fleet token`: tokens that let nodes push and people read. The collector's file holds
only their hashes.
"""

import json
import os
from pathlib import Path

import click

from necroscope.errors import UsageError
from necroscope.fleet.tokens import ROLES, Grant, Role, check_grant, entry_text, new_token


@click.group("token")
def command() -> None:
    """Make a token for a node, a cluster or a reader."""


@command.command("new")
@click.option(
    "--cluster",
    required=True,
    metavar="NAME",
    help="the cluster it pushes to or reads; '*' to read all",
)
@click.option(
    "--role", type=click.Choice(ROLES), default="push", show_default=True, help="what it allows"
)
@click.option("--node", metavar="NAME", help="it pushes as this node only")
@click.option(
    "--to",
    "tokens_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="tokens file to add its line to",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="a new file for the token, mode 0600 [print it]",
)
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def new(
    cluster: str,
    role: Role,
    node: str | None,
    tokens_file: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Make a new token, and the lines for the collector's tokens file, which hold only its hash.

    A collector reads the file again within seconds when it changes; taking the lines out ends the
    token.

    \b
    Examples:
      necroscope fleet token new --cluster eu-1 --to tokens.toml --out /etc/necroscope/token
      necroscope fleet token new --cluster eu-1 --node gpu-17
      necroscope fleet token new --cluster '*' --role read
    """
    check_grant(cluster, role, node, "the token")
    token, grant = new_token(), Grant(cluster, role, node)
    lines = entry_text(token, grant)
    if out is not None:
        _keep(out, token)
    try:
        if tokens_file is not None:
            _append(tokens_file, lines)
    except UsageError:
        if out is not None:
            out.unlink()
        raise
    if as_json:
        files = {
            "file": str(tokens_file) if tokens_file else None,
            "out": str(out) if out else None,
        }
        click.echo(json.dumps({"token": None if out else token, "entry": lines, **files}))
        return
    if out is None:
        click.echo(token)
    if tokens_file is None:
        click.echo(f"\nfor the collector's tokens file:\n\n{lines}", nl=False, err=True)
    else:
        click.echo(
            f"its hash is in {tokens_file}; the token itself is"
            f" {f'in {out}' if out else 'nowhere else'}",
            err=True,
        )


def _keep(path: Path, token: str) -> None:
    try:
        _write_new(path, token + "\n")
    except FileExistsError:
        raise UsageError(
            f"{path} exists already, and may hold a token that is in use", "choose another --out"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", "choose another --out") from None


def _append(path: Path, lines: str) -> None:
    """Whole or not at all: a collector may read at any moment."""
    try:
        before = path.read_text("utf-8") if path.exists() else ""
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.unlink(missing_ok=True)
        _write_new(temporary, before + ("\n" if before else "") + lines)
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", "choose another --to") from None


def _write_new(path: Path, text: str) -> None:
    """For us alone to read from its first byte on; FileExistsError if there is anything of this
    name, a link too.
    """
    with open(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
