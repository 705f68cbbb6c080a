"""The process that keeps the ledger: asks for windows, ends with its recorder, leaves out what kills
it.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.drawn_node import at, drawn_node
from tests.growing_recording import GrowingRecording
from tests.integration.drawn_incident import drawn_incident
from tests.ledger_entries import ledger_entry

from necroscope.store.query import Store
from necroscope.verdicts import follower, keeper
from necroscope.verdicts.keeper import Keeper
from necroscope.verdicts.ledger import LEDGER_FILE, Ledger, records
from necroscope.verdicts.ledger_writer import LedgerWriter, is_kept
from necroscope.verdicts.reading import read_report


@pytest.fixture
def recording(tmp_path: Path) -> GrowingRecording:
    return GrowingRecording(tmp_path / "r", drawn_incident())


def test_a_window_is_asked_for_because_an_incident_was_found(recording: GrowingRecording) -> None:
    asked: list[str] = []
    recording.grow(60)
    kept = Keeper(recording.directory, asked.append)
    assert kept.turn(is_live=True) > 0
    (entry,) = Ledger.open(recording.directory).incidents()
    incident = entry.incident
    assert asked == [f"{incident.from_ns} {incident.to_ns} {incident.verdict.cause}"]
    kept.close()
    again = Keeper(recording.directory, asked.append)
    assert len(asked) == 2
    again.close()
    recording.pin(0, 60)
    Keeper(recording.directory, asked.append).close()
    assert len(asked) == 2


def test_a_new_pin_is_looked_at_before_a_quiet_look_is_due(recording: GrowingRecording) -> None:
    recording.grow(3)
    kept = Keeper(recording.directory, lambda _: None)
    kept.turn(is_live=True)
    recording.grow(6)
    assert kept.turn(is_live=True) == 0
    recording.pin(0, 60)
    assert kept.turn(is_live=True) > 0


def test_while_nothing_happens_the_ledger_hardly_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = GrowingRecording(tmp_path / "quiet", drawn_node("core 0:  " + "." * 60))
    now = [1000.0]
    monkeypatch.setattr(keeper.time, "monotonic", lambda: now[0])
    kept = Keeper(recording.directory, lambda _: None)
    for second in range(1, 55):
        recording.grow(second)
        now[0] += 1
        kept.turn(is_live=True)
    found = list(records((recording.directory / LEDGER_FILE).read_bytes()))
    assert sum("judged" in record for record in found) == 1


def test_the_process_judges_what_is_there_and_ends_with_its_recorder(
    recording: GrowingRecording,
) -> None:
    recording.grow(60)
    command = [sys.executable, "-m", "necroscope.verdicts.keeper", str(recording.directory)]
    ran = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=True)
    (entry,) = Ledger.open(recording.directory).incidents()
    assert f" {entry.incident.verdict.cause}\n".encode() in ran.stdout
    assert ran.stderr == b""
    assert not is_kept(recording.directory)


def test_a_second_process_says_that_there_is_one(recording: GrowingRecording) -> None:
    kept = Keeper(recording.directory, lambda _: None)
    command = [sys.executable, "-m", "necroscope.verdicts.keeper", str(recording.directory)]
    ran = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (1, b"another process keeps the ledger\n")
    kept.close()


class Death(BaseException):
    """Ends the process as a signal would."""


def die(*_: object, **named: object) -> None:
    raise Death


def test_a_stretch_that_kills_the_process_is_left_out_and_reported_for_good(
    recording: GrowingRecording, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.grow(30)
    monkeypatch.setattr(follower, "diagnose", die)
    for _ in range(2):
        kept = Keeper(recording.directory, lambda _: None)
        with pytest.raises(Death):
            kept.turn(is_live=True)
        kept.close()
    kept = Keeper(recording.directory, lambda _: None)
    kept.turn(is_live=True)
    monkeypatch.undo()
    recording.grow(60)
    kept.turn(is_live=True)
    kept.close()
    notes = read_report(Store.open(recording.directory)).notes
    assert any(one.endswith("not judged: the process that judges died on it") for one in notes)
    ledger = Ledger.open(recording.directory)
    assert ledger.judged is not None
    assert ledger.judged[1] >= at(29)


def test_a_past_hour_that_kills_the_process_is_left_out_by_the_third(
    recording: GrowingRecording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "_HOUR_NS", 15_000_000_000)
    recording.grow(60)
    for _ in range(2):
        kept = Keeper(recording.directory, lambda _: None)
        kept.turn(is_live=True)
        with monkeypatch.context() as patch:
            patch.setattr(follower, "diagnose", die)
            with pytest.raises(Death):
                kept.judge_past()
        kept.close()
    kept = Keeper(recording.directory, lambda _: None)
    kept.turn(is_live=True)
    while kept.judge_past():
        pass
    ledger = Ledger.open(recording.directory)
    assert ledger.covers(at(0))
    assert [one.why for one in ledger.unjudged] == ["the process that judges died on it"]


def test_windows_are_asked_for_newest_first_as_far_as_the_recording_holds_them(
    recording: GrowingRecording,
) -> None:
    writer = LedgerWriter(recording.directory)
    writer.append([ledger_entry("rt-hog", second, second + 5) for second in (-50, 10, 40, 20)])
    writer.close()
    asked: list[str] = []
    Keeper(recording.directory, asked.append).close()
    assert asked == [f"{at(second)} {at(second + 5)} rt-hog" for second in (40, 20, 10)]


def test_a_process_that_grew_too_large_waits_before_it_starts_over(
    recording: GrowingRecording, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.grow(60)
    kept = Keeper(recording.directory, lambda _: None)
    monkeypatch.setattr(kept, "turn", lambda **_: 9.0)
    monkeypatch.setattr(keeper, "_resident_bytes", lambda: 1 << 40)
    monkeypatch.setattr(keeper.os, "execv", die)
    waits: list[float] = []
    with pytest.raises(Death):
        keeper.run(kept, lambda wait_s: bool(waits.append(wait_s)), lambda: None)
    assert waits == [0.0, pytest.approx(81.0)]
