"""`necroscope flame` in the test's own process, and its answers read back."""

import sys
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest

from necroscope.cli.main import main

SVG = "{http://www.w3.org/2000/svg}"


class Done(NamedTuple):
    code: int
    out: bytes
    said: str


class FlameCommand:
    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[bytes]
    ) -> None:
        self._monkeypatch = monkeypatch
        self._captured = captured

    def __call__(self, *words: object, command: str = "flame") -> Done:
        """With the exit code, standard output and standard error of the command, or of another
        one.
        """
        self._monkeypatch.setattr(sys, "argv", ["necroscope", command, *map(str, words)])
        self._captured.readouterr()
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        sys.stdout.flush()
        out, said = self._captured.readouterr()
        return Done(code, out, said.decode())


def folded(done: Done) -> dict[str, int]:
    assert done.code == 0, done.said
    return {
        path: int(weight)
        for path, weight in (line.rsplit(" ", 1) for line in done.out.decode().splitlines())
    }


def svg_titles(content: bytes) -> list[str]:
    return [title.text or "" for title in ET.fromstring(content).iter(f"{SVG}title")]
