"""How the questions of `necroscope fleet` are asked: of a lake, or of a collector, with the same
words and the same answer.
"""

import functools
import gc
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from necroscope.cli.secret_file import reading_warning
from necroscope.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])
_WIDEST: Final = 160


@contextmanager
def _without_collection() -> Iterator[None]:
    """A question ends before garbage matters."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_collecting:
            gc.enable()


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """Where an answer comes from."""

    lake: str | None
    url: str | None
    token_file: Path | None
    ca_file: Path | None

    def ask(self, name: str, words: dict[str, str | None]) -> dict[str, Any]:
        if (self.lake is None) == (self.url is None):
            raise UsageError(
                "name either a lake or a collector to ask",
                "--lake DIR|URL, or --url https://collector:7443 --token-file F",
            )
        return (
            self._of_lake(name, words) if self.lake is not None else self._of_collector(name, words)
        )

    def _of_lake(self, name: str, words: dict[str, str | None]) -> dict[str, Any]:
        with _without_collection():
            return self._ask_lake(name, words)

    def _ask_lake(self, name: str, words: dict[str, str | None]) -> dict[str, Any]:
        from necroscope.fleet.ask import LakeQuestions  # noqa: PLC0415 - DuckDB is loaded only where a lake is read
        from necroscope.fleet.lake import Lake  # noqa: PLC0415
        from necroscope.fleet.questions.answer import answer  # noqa: PLC0415

        lake = Lake.open(str(self.lake))
        if not any(map(lake.days, ("pulses", "facts", "events"))):
            raise UsageError(
                f"the lake {self.lake} is empty",
                "fill it with: necroscope fleet serve, and fleet push on the nodes",
            )
        return answer(name, LakeQuestions(lake, time.time_ns()), words)

    def _of_collector(self, name: str, words: dict[str, str | None]) -> dict[str, Any]:
        from necroscope.fleet.request import CollectorClient  # noqa: PLC0415
        from necroscope.fleet.tokens import read_token  # noqa: PLC0415

        if self.token_file is None:
            raise UsageError(
                "a collector needs a token",
                "--token-file F, with one from: necroscope fleet token new --role read",
            )
        if warning := reading_warning(self.token_file):
            click.echo(f"warning: {warning}", err=True)
        client = CollectorClient(str(self.url), read_token(self.token_file), self.ca_file)
        return client.ask(name, {word: value for word, value in words.items() if value})


def with_source(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that every question has; the command gets them as its `source`."""

    @functools.wraps(command)
    def asked(
        lake: str | None,
        url: str | None,
        token_file: Path | None,
        ca_file: Path | None,
        **words: Any,
    ) -> Any:
        return command(source=AnswerSource(lake, url, token_file, ca_file), **words)

    for option in (
        click.option(
            "--ca-file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="certificates to trust for TLS (PEM)",
        ),
        click.option(
            "--token-file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="a token with role read",
        ),
        click.option("--url", metavar="URL", help="ask this collector"),
        click.option(
            "--lake",
            metavar="DIR|URL",
            help="ask this lake: a directory, s3://bucket/prefix or gs://bucket/prefix",
        ),
    ):
        asked = option(asked)
    return asked


# Of a command that works on a lake, and asks nothing.
with_lake = click.option(
    "--lake",
    "lake_url",
    required=True,
    metavar="DIR|URL",
    help="a directory, s3://bucket/prefix or gs://bucket/prefix",
)


def with_span(since: str) -> Callable[[Command], Command]:
    """`--since` and `--until`."""

    def add(command: Command) -> Command:
        with_until = click.option("--until", metavar="T", help="up to this moment [now]")(command)
        return click.option("--since", metavar="T", help=f"ISO 8601, or -7d before now [{since}]")(
            with_until
        )

    return add


def with_failure(command: Command) -> Command:
    """`--event` and `--cause`: the failure that a question is about."""
    with_cause = click.option(
        "--cause", metavar="SLUG", help="a verdict's cause: zombie-memcg-walk, ..."
    )(command)
    return click.option(
        "--event", metavar="KIND", help="an event: nic_reset, soft_lockup, oom_kill, ..."
    )(with_cause)


def with_limit(command: Command) -> Command:
    """`--limit`, of a list whose newest come first."""
    return click.option(
        "--limit",
        type=click.IntRange(1, 10_000),
        default=100,
        show_default=True,
        metavar="N",
        help="the newest N in JSON",
    )(command)


def show(
    answer: dict[str, Any], to_text: Callable[[dict[str, Any], int], str], *, as_json: bool
) -> None:
    click.echo(json.dumps(answer) if as_json else to_text(answer, width()))


def width() -> int:
    return min(shutil.get_terminal_size()[0], _WIDEST) if sys.stdout.isatty() else 100
