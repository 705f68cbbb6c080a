"""Stretches are looked at in a process of its own; one that fails or kills the process does not
take the others with it.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from necroscope.views.web.incident_search import IncidentSearch, SearchResult

ODD, DEADLY = 1, 2


def diagnosed(directory: Path, at_ns: int | None, span: tuple[int, int] | None) -> dict[str, Any]:
    """Runs in the other process."""
    assert span is not None
    if span[0] == ODD:
        raise ValueError("odd")
    if span[0] == DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)
    return {
        "incidents": [{"from_ns": str(span[0])}],
        "notes": [directory.name, str(os.getpid() != 0)],
    }


@pytest.fixture
def search(tmp_path: Path) -> Iterator[IncidentSearch]:
    made = IncidentSearch(diagnosed, tmp_path / "recording")
    yield made
    made.close()


def test_a_stretch_that_fails_or_kills_takes_no_other_with_it(search: IncidentSearch) -> None:
    odd, well, deadly, again = (search.submit((start, 9)) for start in (ODD, 5, DEADLY, 6))
    assert odd.result(30) == SearchResult([], [], "ValueError: odd")
    assert well.result(30) == SearchResult([{"from_ns": "5"}], ["recording", "True"])
    assert "was ended (exit code -9)" in (deadly.result(30).failure or "")
    assert again.result(30).incidents == [{"from_ns": "6"}]


def test_closing_ends_the_process_and_what_waits(search: IncidentSearch) -> None:
    assert search.submit((5, 9)).result(30).failure is None
    assert search._begun_before is not None
    process = search._begun_before[1]
    search.close()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL


def test_nothing_is_started_before_it_is_asked(search: IncidentSearch) -> None:
    assert search._begun_before is None


def test_a_process_that_cannot_be_started_is_reported(
    search: IncidentSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr("multiprocessing.context.SpawnProcess.start", refuse)
    assert (
        search.submit((5, 9)).result(30).failure
        == "no process to look for incidents: no more processes"
    )
