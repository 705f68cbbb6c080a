"""What is kept of each catch, and when it is cut."""

from pathlib import Path
from typing import Any

import pytest

from necroscope.stakeout import excerpts
from necroscope.stakeout.excerpts import MOST, Excerpts
from necroscope.store.query import Store

S = 1_000_000_000
LAB = Path(__file__).parents[2] / "data" / "lab"


class Cutter:
    """In place of the process that cuts: `codes` are what each ends with, None while it is under
    way.
    """

    started: list[list[str]]
    codes: list[int | None]

    def __init__(self, command: list[str], **_: Any) -> None:
        self.started.append(command)
        self.number, self.pid = len(self.started) - 1, 1
        Path(command[-1]).mkdir(parents=True)

    @property
    def returncode(self) -> int | None:
        return self.codes[self.number]

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        self.codes[self.number] = self.returncode or 0
        return self.returncode

    def kill(self) -> None:
        self.codes[self.number] = -9


@pytest.fixture
def cutter(monkeypatch: pytest.MonkeyPatch) -> type[Cutter]:
    Cutter.started, Cutter.codes = [], [None] * 50
    monkeypatch.setattr(excerpts.subprocess, "Popen", Cutter)
    monkeypatch.setattr(excerpts.os, "setpriority", lambda *_: None)
    return Cutter


def test_one_is_cut_at_a_time_and_only_when_what_followed_it_is_on_disk(
    tmp_path: Path, cutter: type[Cutter]
) -> None:
    kept = Excerpts(Path("night/recording"), tmp_path, [])
    kept.want("oom_kill", 1000 * S)
    kept.want("run-0007", 1100 * S)
    kept.follow(1015 * S)
    assert not cutter.started
    kept.follow(1200 * S)
    kept.follow(1201 * S)
    (command,) = cutter.started
    assert command[4:] == [
        *(
            "excerpt",
            "night/recording",
            "--from",
            "1970-01-01T00:13:40.000Z",
            "--to",
            "1970-01-01T00:16:50.000Z",
        ),
        *("--dir", str(tmp_path / "0001-oom_kill")),
    ]
    cutter.codes[0] = 0
    kept.follow(1202 * S)
    assert (len(cutter.started), kept.kept) == (2, ["0001-oom_kill"])


def test_lines_of_the_same_trouble_are_kept_once_and_there_is_a_most(
    tmp_path: Path, cutter: type[Cutter]
) -> None:
    kept = Excerpts(Path("r"), tmp_path, [])
    for number in range(MOST + 9):
        kept.want("nic_reset", (1000 + 100 * number) * S)
        kept.want("nic_tx_timeout", (1001 + 100 * number) * S)
    kept.finish()
    assert len(cutter.started) == len(kept.kept) == MOST
    assert all(name.endswith("nic_reset") for name in kept.kept)


def test_one_that_failed_leaves_nothing(tmp_path: Path, cutter: type[Cutter]) -> None:
    kept = Excerpts(Path("r"), tmp_path, [])
    kept.want("oom_kill", 1000 * S)
    kept.follow(2000 * S)
    cutter.codes[0] = 6
    kept.finish()
    assert (kept.kept, list(tmp_path.iterdir())) == ([], [])
    kept.want("oom_kill", 3000 * S)
    kept.follow(4000 * S)
    kept.abandon()
    assert (kept.kept, list(tmp_path.iterdir())) == ([], [])


def test_what_is_kept_is_a_recording(tmp_path: Path) -> None:
    info = Store.open(LAB / "rt-hog").info()
    assert info.to_ns is not None
    kept = Excerpts(LAB / "rt-hog", tmp_path / "catches", [])
    kept.want("run-0001", info.to_ns - 20 * S)
    kept.finish()
    assert kept.kept == ["0001-run-0001"]
    assert Store.open(tmp_path / "catches" / "0001-run-0001").info().tables["cores"] > 0


def test_a_node_that_cannot_fork_costs_the_excerpt_and_not_the_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError("no process left")

    monkeypatch.setattr(excerpts.subprocess, "Popen", refuse)
    kept: list[str] = []
    own = Excerpts(tmp_path / "recording", tmp_path / "catches", kept)
    own.want("run-0001", 0)
    own.follow(60 * S)
    own.want("run-0002", 200 * S)
    own.finish()
    assert kept == []
