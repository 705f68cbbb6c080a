"""`necroscope fleet token new --out`: a token in a file of its own, and who else may read it."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from necroscope.cli.fleet import command
from necroscope.errors import NecroscopeError, UsageError
from necroscope.fleet.tokens import Grant, read_token, read_tokens


def run(*words: str) -> Result:
    result = CliRunner().invoke(command, ["token", "new", "--cluster", "eu-1", *words])
    if isinstance(result.exception, NecroscopeError):
        raise result.exception
    return result


def test_a_new_token_is_for_its_owner_alone(tmp_path: Path) -> None:
    tokens, out = tmp_path / "tokens.toml", tmp_path / "token"
    before = os.umask(0o022)
    try:
        answer = run("--to", str(tokens), "--out", str(out))
    finally:
        os.umask(before)
    token = read_token(out)
    assert (out.stat().st_mode & 0o777, answer.stdout) == (0o600, "")
    assert token not in answer.stderr
    assert read_tokens(tokens).grant_of(token) == Grant("eu-1", "push")
    answer = run("--out", str(tmp_path / "other"), "--json")
    assert read_token(tmp_path / "other") not in answer.output


def test_a_token_that_is_there_stays(tmp_path: Path) -> None:
    tokens, out = tmp_path / "tokens.toml", tmp_path / "token"
    out.write_text("in use", "utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for taken in (out, tmp_path / "link"):
        with pytest.raises(UsageError, match="exists already"):
            run("--to", str(tokens), "--out", str(taken))
    assert out.read_text("utf-8") == "in use"
    assert not (tmp_path / "elsewhere").exists()
    assert not tokens.exists()


def test_a_token_that_nobody_would_know_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        run("--to", str(tmp_path / "no" / "tokens.toml"), "--out", str(tmp_path / "token"))
    assert not (tmp_path / "token").exists()
    with pytest.raises(UsageError, match="cannot write"):
        run("--out", str(tmp_path / "no" / "token"))


def test_a_link_beside_the_tokens_file_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / ".tokens.toml.tmp").symlink_to(tmp_path / "elsewhere")
    run("--to", str(tmp_path / "tokens.toml"))
    assert read_tokens(tmp_path / "tokens.toml")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(("mode", "is_warned"), [(0o644, True), (0o640, False), (0o600, False)])
def test_a_token_that_everybody_may_read_is_warned_of(
    tmp_path: Path, mode: int, is_warned: bool
) -> None:
    token = tmp_path / "token"
    token.write_text("necro_x", "utf-8")
    token.chmod(mode)
    output = CliRunner().invoke(
        command, ["nodes", "--url", "http://127.0.0.1:9", "--token-file", str(token)]
    )
    assert (f"warning: every user of this machine may read {token}" in output.stderr) == is_warned
