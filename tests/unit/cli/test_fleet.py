"""The fleet's commands: what they refuse, and that they cost nothing until they are asked for."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from necroscope.cli.fleet import _COMMANDS, command
from necroscope.errors import NecroscopeError
from necroscope.fleet.tokens import Grant, read_tokens


def run(*words: str) -> Result:
    result = CliRunner().invoke(command, words)
    if isinstance(result.exception, NecroscopeError):
        raise result.exception
    return result


def test_the_group_loads_nothing_of_the_fleet() -> None:
    code = (
        "import sys, necroscope.cli.fleet; print([n for n in sys.modules if"
        " n.startswith(('pyarrow', 'necroscope.fleet'))])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_every_command_that_is_listed_has_its_file() -> None:
    assert not [name for name in _COMMANDS if find_spec(f"necroscope.cli.fleet_{name}") is None]


def test_a_new_token_is_printed_once_and_its_hash_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    first = run(
        "token", "new", "--cluster", "eu-1", "--node", "gpu-17", "--to", str(file)
    ).stdout.strip()
    second = run(
        "token", "new", "--cluster", "*", "--role", "read", "--to", str(file)
    ).stdout.strip()
    tokens = read_tokens(file)
    assert tokens.grant_of(first) == Grant("eu-1", "push", "gpu-17")
    assert tokens.grant_of(second) == Grant("*", "read")
    assert first not in file.read_text("utf-8")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_new_token_without_a_file_comes_with_its_lines(tmp_path: Path) -> None:
    result = run("token", "new", "--cluster", "eu-1")
    file = tmp_path / "tokens.toml"
    file.write_text(result.stderr[result.stderr.index("[[token]]") :], "utf-8")
    assert read_tokens(file).grant_of(result.stdout.strip()) == Grant("eu-1", "push")
    answer: dict[str, Any] = json.loads(run("token", "new", "--cluster", "eu-1", "--json").stdout)
    file.write_text(answer["entry"], "utf-8")
    assert read_tokens(file).grant_of(answer["token"]) == Grant("eu-1", "push")


@pytest.mark.parametrize(
    "words", [("--cluster", "*"), ("--cluster", "a/b"), ("--cluster", "a", "--node", "../x")]
)
def test_a_token_for_what_cannot_be_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(NecroscopeError):
        run("token", "new", *words)


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("--host", "0.0.0.0"), "open to the network"),
        (("--host", "collector.example"), "open to the network"),
        (("--tls-cert", "x.pem"), "belong together"),
        (("--tls-cert", "missing.pem", "--tls-key", "missing.pem"), "cannot use missing.pem"),
        (("--commit-every", "soon"), "is not a valid duration"),
        (("--max-body", "much"), "is not a valid size"),
        ((), "cannot read tokens"),
    ],
)
def test_a_collector_that_would_be_unsafe_or_cannot_start_says_why(
    tmp_path: Path, words: tuple[str, ...], facts: str
) -> None:
    with pytest.raises(NecroscopeError, match=facts) as caught:
        run(
            "serve",
            "--lake",
            str(tmp_path / "lake"),
            "--tokens",
            str(tmp_path / "none.toml"),
            *words,
        )
    assert caught.value.hint or "belong" in facts
