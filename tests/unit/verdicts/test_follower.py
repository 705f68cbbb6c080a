"""A recording that grows is judged as it grows: when an incident is in the ledger, and that it is
the one that `diagnose` finds in the whole recording.
"""

from dataclasses import replace
from pathlib import Path
from unittest.mock import DEFAULT, Mock

import pytest
from tests.drawn_node import DrawnNode, at, drawn_node
from tests.growing_recording import GrowingRecording
from tests.integration.drawn_incident import drawn_incident

from necroscope.analysis import incidents
from necroscope.analysis.engine import diagnose
from necroscope.segment.sealed_reader import SegmentGoneError
from necroscope.store.query import Store
from necroscope.verdicts import follower, ledger_writer
from necroscope.verdicts.entry import IncidentState, LedgerEntry
from necroscope.verdicts.follower import Follower
from necroscope.verdicts.ledger_writer import LedgerWriter

FLUSH_S = 3
LONG = f"""
    core 0:  {"." * 180}
    core 1:  {"." * 60}{"k" * 60}{"." * 60}
    k: system  walker[500]  /system.slice/walker.service  main, read > vfs_read, timer_list_show
"""


class Following:
    """A recording that grows by a flush at a time, and what the ledger said at each second."""

    def __init__(self, directory: Path, node: DrawnNode) -> None:
        self.recording = GrowingRecording(directory, node)
        self.writer = LedgerWriter(directory)
        self.follower = Follower(directory, self.writer.ledger)
        self.changes: list[tuple[int, str, LedgerEntry]] = []

    def until(self, end_s: int, from_s: int = 0) -> "Following":
        for second in range(from_s + FLUSH_S, end_s + 1, FLUSH_S):
            self.recording.grow(second)
            self.look(second)
        return self

    def look(self, second: int, *, is_live: bool = True) -> None:
        found = self.follower.look(is_live=is_live)
        if found is not None:
            self.writer.append(found.entries, found.judged, found.notes, found.unjudged)
            self.changes += [(second, one.state.value, one) for one in found.entries]


def test_a_short_incident_is_in_the_ledger_within_ten_seconds_of_its_end(tmp_path: Path) -> None:
    following = Following(tmp_path / "r", drawn_incident()).until(60)
    whole = diagnose(Store.open(tmp_path / "r")).wrong
    assert len(whole) == 1
    kept = following.writer.ledger.incidents()
    assert [one.incident.verdict.cause for one in kept] == [whole[0].verdict.cause]
    assert [one.id for one in kept] == [whole[0].id]
    first_s = following.changes[0][0]
    assert 0 <= at(first_s) - whole[0].to_ns <= 10_000_000_000


def test_a_long_incident_is_opened_soon_and_closed_soon_after_its_end(tmp_path: Path) -> None:
    changes = Following(tmp_path / "r", drawn_node(LONG)).until(180).changes
    states = [(second, state) for second, state, _ in changes]
    opened_s, closed_s = states[0][0], states[-1][0]
    assert [state for _, state in states] == ["open"] * (len(states) - 1) + ["closed"]
    assert 60 < opened_s <= 60 + 21
    assert 120 < closed_s <= 120 + 10
    assert len({entry.id for _, _, entry in changes}) == 1


def test_an_incident_longer_than_the_judged_hour_stays_open_while_others_come_and_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "_HOUR_NS", 90_000_000_000)
    monkeypatch.setattr(follower, "_STRETCH_NS", 30_000_000_000)
    short = ("." * 35 + "k" * 10) * 6
    changes = (
        Following(
            tmp_path / "r",
            drawn_node(f"""
    core 0:  {"." * 270}
    core 1:  {"." * 60}{"k" * 180}{"." * 30}
    core 2:  {short}
    k: system  walker[500]  /system.slice/walker.service  main, read > vfs_read, timer_list_show
"""),
        )
        .until(270)
        .changes
    )
    long = [(second, state) for second, state, one in changes if one.incident.core == 1]
    assert [state for _, state in long] == ["open"] * (len(long) - 1) + ["closed"]
    assert 240 < long[-1][0] <= 250
    assert len({one.id for _, _, one in changes if one.incident.core == 1}) == 1


def test_each_incident_is_judged_a_few_times_not_at_every_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = []
    monkeypatch.setattr(
        incidents, "decide", lambda *words, real=incidents.decide: judged.append(1) or real(*words)
    )
    Following(tmp_path / "r", drawn_node(LONG)).until(180)
    assert 2 <= len(judged) <= 8


def test_a_ledger_that_was_lost_is_made_again_with_the_same_ids(tmp_path: Path) -> None:
    following = Following(tmp_path / "r", drawn_incident()).until(60)
    ids = [one.id for one in following.writer.ledger.incidents()]
    (tmp_path / "r" / "incidents.jsonl").unlink()
    following.writer.close()
    again = LedgerWriter(tmp_path / "r")
    found = Follower(tmp_path / "r", again.ledger).look(is_live=True)
    assert found is not None
    assert [one.id for one in found.entries] == ids != []


def test_who_takes_over_judges_nothing_twice(tmp_path: Path) -> None:
    following = Following(tmp_path / "r", drawn_incident()).until(60)
    found = Follower(tmp_path / "r", following.writer.ledger).look(is_live=False)
    assert found is not None
    assert found.entries == []


def test_when_the_recorder_ends_what_goes_on_is_closed(tmp_path: Path) -> None:
    following = Following(tmp_path / "r", drawn_node(LONG)).until(100)
    following.look(100, is_live=False)
    assert [one.state.value for one in following.writer.ledger.incidents()] == ["closed"]
    assert following.writer.ledger.judged is not None
    assert following.writer.ledger.judged[1] >= at(98)


def test_an_old_recording_is_begun_with_its_end_and_judged_backwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "_HOUR_NS", 15_000_000_000)
    GrowingRecording(tmp_path / "r", drawn_incident()).grow(60)
    writer = LedgerWriter(tmp_path / "r")
    judge = Follower(tmp_path / "r", writer.ledger)
    first = judge.look(is_live=False)
    assert first is not None
    assert first.judged[0] > at(40)
    rounds = []
    while (found := judge.judge_past()) is not None:
        writer.append(found.entries, found.judged)
        rounds.append(found.judged[0])
    assert rounds == sorted(rounds, reverse=True)
    assert rounds[-1] <= at(0)
    assert len(writer.ledger.incidents()) == 1


def test_hours_without_a_keeper_are_judged_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "_HOUR_NS", 15_000_000_000)
    following = Following(tmp_path / "r", drawn_incident()).until(6)
    assert following.follower.judge_past() is None
    following.recording.grow(60)
    writer = following.writer
    # The process that goes on is in the same place as one that is started then.
    for judge in (following.follower, Follower(tmp_path / "r", writer.ledger)):
        found = judge.look(is_live=True)
        assert found is not None
        assert found.judged[0] >= at(40)
    rounds = 0
    while (found := judge.judge_past()) is not None:
        writer.append(found.entries, found.judged)
        rounds += 1
    assert rounds >= 3
    assert [one.id for one in writer.ledger.incidents()] == [
        one.id for one in diagnose(Store.open(tmp_path / "r")).wrong
    ]
    assert following.follower.judge_past() is not None


def test_the_verdicts_of_another_version_are_made_again_under_the_same_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_writer, "rules", lambda: "0.0.1")
    following = Following(tmp_path / "r", drawn_incident()).until(60)
    (entry,) = following.writer.ledger.incidents()
    verdict = replace(entry.incident.verdict, cause="unknown")
    old = replace(entry, incident=replace(entry.incident, id="old", verdict=verdict))
    following.writer.append([replace(entry, state=IncidentState.MERGED), old])
    following.writer.close()
    monkeypatch.undo()
    writer = LedgerWriter(tmp_path / "r")
    assert not writer.ledger.covers(at(0))
    found = Follower(tmp_path / "r", writer.ledger).look(is_live=True)
    assert found is not None
    assert [(one.id, one.incident.verdict.cause) for one in found.entries] == [
        ("old", entry.incident.verdict.cause)
    ]


def test_a_round_that_failed_is_noted_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    following = Following(tmp_path / "r", drawn_incident()).until(6)
    monkeypatch.setattr(incidents, "decide", Mock(side_effect=ZeroDivisionError("no time")))
    following.until(45, from_s=6)
    (unjudged,) = following.writer.ledger.unjudged
    assert str(unjudged).endswith("was not judged: ZeroDivisionError: no time")
    monkeypatch.undo()
    following.until(60, from_s=45)
    assert len(following.writer.ledger.incidents()) == 1
    assert following.writer.ledger.unjudged == ()


def test_a_segment_that_is_gone_is_looked_for_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    following = Following(tmp_path / "r", drawn_incident())
    following.recording.grow(60)
    answers = Mock(side_effect=[SegmentGoneError("it is gone"), DEFAULT] * 2, wraps=diagnose)
    monkeypatch.setattr(follower, "diagnose", answers)
    following.look(60)
    assert len(following.writer.ledger.incidents()) == 1


def test_an_empty_recording_has_no_rounds(tmp_path: Path) -> None:
    following = Following(tmp_path / "r", drawn_incident())
    assert following.follower.look(is_live=True) is None or following.changes == []
