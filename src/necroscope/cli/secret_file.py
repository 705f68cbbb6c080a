"""Files that hold a token or a secret should be for their owner alone."""

import stat
from pathlib import Path
from typing import Final

import click

from necroscope.errors import UsageError

_SHORTEST_TOKEN: Final = 16


def read_token(file: Path, option: str) -> str:
    """The token that clients of a server of ours must send; `option` names the file."""
    if warning := reading_warning(file):
        click.echo(f"warning: {warning}", err=True)
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}", f"check {option}") from None
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise UsageError(
            f"the token in {file} is too short or not plain text",
            f"write at least {_SHORTEST_TOKEN} printable characters into it",
        )
    return token


def reading_warning(path: Path) -> str | None:
    """If every user of this machine may read it; None for one that is not there: its reader
    says so.
    """
    try:
        is_open = path.stat().st_mode & stat.S_IROTH
    except OSError:
        return None
    return (
        f"every user of this machine may read {path}; end that with: chmod 600 {path}"
        if is_open
        else None
    )
