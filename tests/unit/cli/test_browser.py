"""The browser is opened with a file that only its owner reads, and no token on its command line."""

import stat
import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from necroscope.cli.browser import opened_in_browser


def test_the_token_is_in_a_file_of_the_owner_and_not_in_the_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    with opened_in_browser('http://127.0.0.1:8080/?once=secret&x="<'):
        (address,) = opened
        file = Path(unquote(urlsplit(address).path))
        assert "secret" not in address
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert "url=http://127.0.0.1:8080/?once=secret&amp;x=&quot;&lt;" in file.read_text()
    assert not file.exists()
