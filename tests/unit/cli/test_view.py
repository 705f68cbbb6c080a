"""Where the time machine listens, and under which names it may be asked."""

import socket
from pathlib import Path

import pytest

from necroscope.cli.secret_file import read_token
from necroscope.cli.view import address_of, own_hosts
from necroscope.errors import UsageError


def test_an_ipv6_address_has_brackets() -> None:
    assert address_of("::1", 8080) == "http://[::1]:8080/"
    assert address_of("127.0.0.1", 8080) == "http://127.0.0.1:8080/"
    assert "[fe80::1]" in own_hosts("fe80::1")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_on_all_addresses_the_machine_may_be_asked_by_its_names(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Node-7")
    monkeypatch.setattr(socket, "getfqdn", lambda: "node-7.example.com")
    assert {"node-7", "node-7.example.com", "localhost"} <= own_hosts(host)
    assert "node-7" not in own_hosts("127.0.0.1")


@pytest.mark.parametrize(("text", "said"), [("short", "too short"), (None, "cannot read")])
def test_a_token_that_anyone_could_guess_is_refused(
    tmp_path: Path, text: str | None, said: str
) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError) as refused:
        read_token(file, "--token-file")
    assert said in refused.value.facts
