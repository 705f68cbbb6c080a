"""Who may do what."""

from pathlib import Path

import pytest

from necroscope.errors import NecroscopeError, UsageError
from necroscope.fleet.tokens import (
    Grant,
    TokenFile,
    Tokens,
    digest_of,
    entry_text,
    new_token,
    read_token,
    read_tokens,
)


def write(path: Path, *entries: tuple[str, Grant]) -> Path:
    path.write_text("\n".join(entry_text(token, grant) for token, grant in entries), "utf-8")
    return path


def test_a_token_has_the_grant_of_its_lines(tmp_path: Path) -> None:
    push, read = new_token(), new_token()
    file = write(
        tmp_path / "tokens.toml",
        (push, Grant("eu-1", "push", "gpu-17")),
        (read, Grant("*", "read")),
    )
    tokens = read_tokens(file)
    assert tokens.grant_of(push) == Grant("eu-1", "push", "gpu-17")
    assert tokens.grant_of(read) == Grant("*", "read")
    assert push not in file.read_text("utf-8")


@pytest.mark.parametrize("guess", ["", "x", "\udcff", "x" * 100_000])
def test_another_token_has_none(guess: str) -> None:
    assert Tokens({digest_of("right"): Grant("eu-1", "push")}).grant_of(guess) is None


def test_the_hash_itself_is_no_token() -> None:
    assert Tokens({digest_of("right"): Grant("eu-1", "push")}).grant_of(digest_of("right")) is None


def test_a_hash_that_only_begins_the_same_is_refused() -> None:
    digest = digest_of("right")
    twin = digest[:-1] + ("0" if digest[-1] != "0" else "1")
    assert Tokens({twin: Grant("eu-1", "push")}).grant_of("right") is None


def test_a_reader_of_one_cluster_reads_that_one() -> None:
    assert Grant("eu-1", "read").clusters == ("eu-1",)
    assert Grant("*", "read").clusters is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "token = 5",
        "[[token]]",
        '[[token]]\nsha256 = "secret"\ncluster = "a"\nrole = "push"',
        f'[[token]]\nsha256 = "{"0" * 64}"\ncluster = "*"\nrole = "push"',
        f'[[token]]\nsha256 = "{"0" * 64}"\ncluster = "../x"\nrole = "push"',
        f'[[token]]\nsha256 = "{"0" * 64}"\ncluster = "a"\nrole = "admin"',
        f'[[token]]\nsha256 = "{"0" * 64}"\ncluster = "a"\nrole = "push"\nnode = "a/b"',
        f'[[token]]\nsha256 = "{"0" * 64}"\ncluster = "a"\nrole = "push"\nnode = 5',
        f'[[token]]\nsha256 = "{"0" * 64}"\ncluster = "a"\nrole = "push"\nnodes = "typo"',
        "not toml",
    ],
)
def test_a_file_that_is_off_is_refused_as_a_whole(text: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(UsageError):
        read_tokens(file)


def test_a_token_that_is_taken_out_is_refused_without_a_restart(tmp_path: Path) -> None:
    old, new = new_token(), new_token()
    tokens = TokenFile(write(tmp_path / "tokens.toml", (old, Grant("eu-1", "push"))))
    assert not tokens.refresh()
    write(tmp_path / "next.toml", (new, Grant("eu-1", "push"))).replace(tmp_path / "tokens.toml")
    assert tokens.refresh()
    assert tokens.grant_of(old) is None
    assert tokens.grant_of(new) is not None


def test_a_file_that_breaks_later_leaves_the_tokens_as_they_were(tmp_path: Path) -> None:
    token = new_token()
    file = write(tmp_path / "tokens.toml", (token, Grant("eu-1", "push")))
    tokens = TokenFile(file)
    file.unlink()
    with pytest.raises(UsageError):
        tokens.refresh()
    assert tokens.grant_of(token) == Grant("eu-1", "push")


def test_a_node_reads_its_token_from_a_line(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("necro_x\n", "utf-8")
    assert read_token(file) == "necro_x"
    for text in ("", "two words"):
        file.write_text(text, "utf-8")
        with pytest.raises(NecroscopeError):
            read_token(file)


def test_a_file_that_stays_broken_is_an_error_each_time_until_it_is_whole(tmp_path: Path) -> None:
    file = write(tmp_path / "tokens.toml", (new_token(), Grant("eu-1", "push")))
    tokens, new = TokenFile(file), new_token()
    file.write_text("broken", "utf-8")
    for _ in range(2):
        with pytest.raises(UsageError):
            tokens.refresh()
    write(file, (new, Grant("eu-1", "push")))
    assert tokens.refresh()
    assert tokens.grant_of(new) is not None


def test_who_takes_out_the_last_token_lets_nobody_in(tmp_path: Path) -> None:
    token = new_token()
    tokens = TokenFile(write(tmp_path / "tokens.toml", (token, Grant("eu-1", "push"))))
    (tmp_path / "tokens.toml").write_text("# none\n", "utf-8")
    assert tokens.refresh()
    assert tokens.grant_of(token) is None
