"""A line on a terminal that says how far a long import has come."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from necroscope.interchange.import_options import Progress
from necroscope.model.names import clean

_CELLS: Final = 30
_SILENT_S: Final = 2.0


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Shown once it takes longer than a moment, and gone at the end."""
    bar = _Bar()
    try:
        yield bar.show
    finally:
        bar.end()


class _Bar:
    def __init__(self) -> None:
        self._started_s = time.monotonic()
        self._is_shown = False
        self._is_terminal = sys.stderr.isatty()

    def show(self, name: str, done_bytes: int, all_bytes: int) -> None:
        if not self._is_terminal or time.monotonic() - self._started_s < _SILENT_S:
            return
        self._is_shown = True
        cells = _CELLS * done_bytes // max(all_bytes, 1)
        bar = "█" * cells + "░" * (_CELLS - cells)
        click.echo(
            f"\r\x1b[K{bar} {done_bytes / max(all_bytes, 1):4.0%}  {clean(name, 60)}",
            nl=False,
            err=True,
        )

    def end(self) -> None:
        if self._is_shown:
            click.echo("\r\x1b[K", nl=False, err=True)
