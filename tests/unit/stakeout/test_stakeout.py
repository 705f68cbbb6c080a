"""How a stakeout looks for what it waits for, through a long night."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from necroscope.stakeout import stakeout as module
from necroscope.stakeout.outcome import Run
from necroscope.stakeout.plan import Plan
from necroscope.stakeout.stakeout import Stakeout

S = 1_000_000_000


class Night:
    """In place of the store: rows of `events`, and each question."""

    def __init__(self) -> None:
        self.opened = 0
        self.windows: list[tuple[int, int]] = []
        self.events: list[dict[str, Any]] = []

    def open(self, _path: Path) -> "Night":
        self.opened += 1
        return self

    def rows(self, _table: str, from_ns: int, to_ns: int, columns: Any) -> pa.Table:
        self.windows.append((from_ns, to_ns))
        inside = [row for row in self.events if from_ns <= row["time"] < to_ns]
        schema = pa.schema([("time", pa.int64()), ("kind", pa.string()), ("message", pa.string())])
        return pa.Table.from_pylist(inside, schema=schema)


@pytest.fixture
def night(monkeypatch: pytest.MonkeyPatch) -> Night:
    night = Night()
    monkeypatch.setattr(module, "Store", night)
    return night


def staked(tmp_path: Path, *until: str) -> Stakeout:
    stakeout = Stakeout(tmp_path, ["job"], Plan(frozenset(until), counts_all=True), lambda *_: None)
    stakeout.outcome.runs.append(Run(1, 1000 * S, 1060 * S, 0, 0.1, 1, "1.log"))
    return stakeout


def look(stakeout: Stakeout, monkeypatch: pytest.MonkeyPatch, at_s: int) -> None:
    monkeypatch.setattr(module.time, "time_ns", lambda: at_s * S)
    stakeout._catch()


def test_a_look_asks_only_for_what_may_be_new_and_opens_nothing_anew(
    tmp_path: Path, night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    stakeout = staked(tmp_path, "oom_kill")
    for at_s in (1001, 9000, 9001):
        look(stakeout, monkeypatch, at_s)
    assert night.opened == 1
    assert night.windows == [(1000 * S, 1002 * S), (1000 * S, 9001 * S), (8880 * S, 9002 * S)]


def test_an_event_that_is_written_late_is_caught_once(
    tmp_path: Path, night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    stakeout = staked(tmp_path, "oom_kill")
    look(stakeout, monkeypatch, 1050)
    night.events.append({"time": 1040 * S, "kind": "oom_kill", "message": "Killed process 7"})
    for at_s in (1051, 1052):
        look(stakeout, monkeypatch, at_s)
    assert [(event.kind, event.runs) for event in stakeout.outcome.caught] == [("oom_kill", (1,))]
    assert [path.name for path, _ in stakeout._excerpts._due] == ["0001-oom_kill"]
