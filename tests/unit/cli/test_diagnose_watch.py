"""What `--watch` shows, and when: once while it goes on, once when it is over."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.drawn_node import drawn_node
from tests.growing_recording import GrowingRecording

from necroscope.cli.diagnose_watch import watch
from necroscope.segment.lock import RecordingLock
from necroscope.verdicts.keeper import Keeper

NODE = """
    core 0:  ........................................................................
    core 1:  ..........xxxxxxxxxxxxxxxxxxxx..........................................
    x: system  tool[44]  /  main > odd_driver_loop
"""


class Watched:
    """A recording that grows by three seconds whenever the watcher sleeps."""

    def __init__(self, directory: Path) -> None:
        self.recording = GrowingRecording(directory, drawn_node(NODE)).grow(3)
        self.lock = RecordingLock(directory)
        self.shown: list[tuple[int, str]] = []
        self.second = 3

    def watch(self, until: int, keep: Callable[[], object] = lambda: None) -> None:
        def sleep(_: float) -> None:
            if self.second >= until:
                self.lock.close()
            else:
                self.second += 3
                self.recording.grow(self.second)
            keep()

        watch(
            self.recording.directory,
            100,
            lambda text: self.shown.append((self.second, text)),
            sleep,
        )


@pytest.mark.parametrize("is_kept", [True, False])
def test_an_incident_is_shown_while_it_goes_on_and_again_when_it_is_over(
    tmp_path: Path, is_kept: bool
) -> None:
    watched = Watched(tmp_path / "r")
    if is_kept:
        keeper = Keeper(tmp_path / "r", lambda _: None)
        watched.watch(60, lambda: keeper.turn(is_live=True))
    else:
        watched.watch(60)
    (first_s, first), (last_s, last) = watched.shown
    assert "since 2025-10-09 08:53:30 UTC, still going on" in first
    assert 20 < first_s <= 30
    assert "2025-10-09 08:53:30 to 08:53:50 UTC" in last
    assert "for 20.0 s" in last
    assert last_s <= 40


def test_when_the_recording_ends_nothing_goes_on(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "r")
    watched.watch(27)
    assert "still going on" in watched.shown[0][1]
    assert "still going on" not in watched.shown[-1][1]
    assert len(watched.shown) == 2


def test_what_the_ledger_holds_is_shown_at_once(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "r")
    watched.watch(60)
    keeper = Keeper(tmp_path / "r", lambda _: None)
    keeper.turn(is_live=False)
    keeper.close()
    shown: list[str] = []
    watch(tmp_path / "r", 100, shown.append)
    assert len(shown) == 1
