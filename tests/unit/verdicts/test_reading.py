"""What a reader gets: the ledger's incidents, what came since, and a judgement of its own where there
is no ledger to trust.
"""

from pathlib import Path

import pytest
from tests.drawn_node import at
from tests.growing_recording import GrowingRecording
from tests.integration.drawn_incident import drawn_incident

from necroscope.analysis.engine import diagnose
from necroscope.store.query import Store
from necroscope.verdicts import ledger, reading
from necroscope.verdicts.keeper import Keeper
from necroscope.verdicts.reading import current_ledger, read_report


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What a reader judged itself."""
    spans: list[object] = []

    def note(*words: object, **named: object) -> object:
        spans.append(named.get("span"))
        return diagnose(*words, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(reading, "diagnose", note)
    return spans


def kept(directory: Path, until: float, *, is_live: bool = False) -> GrowingRecording:
    recording = GrowingRecording(directory, drawn_incident()).grow(until)
    keeper = Keeper(directory, lambda _: None)
    keeper.turn(is_live=is_live)
    keeper.close()
    return recording


def test_a_recording_that_was_judged_is_not_judged_again(
    tmp_path: Path, judged: list[object]
) -> None:
    kept(tmp_path / "r", 60)
    store = Store.open(tmp_path / "r")
    report = read_report(store)
    assert judged == []
    assert report == diagnose(store)
    assert len(report.wrong) == 1
    assert read_report(store, core=3).wrong == ()
    assert len(read_report(store, core=1).wrong) == 1


def test_what_came_since_is_judged_and_joined(tmp_path: Path, judged: list[object]) -> None:
    recording = kept(tmp_path / "r", 12, is_live=True)
    recording.grow(60)
    store = Store.open(tmp_path / "r")
    assert [one.id for one in read_report(store).wrong] == [one.id for one in diagnose(store).wrong]
    assert len(judged) == 1


def test_without_a_ledger_or_with_one_of_other_rules_all_is_judged(
    tmp_path: Path, judged: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path / "r", 60)
    monkeypatch.setattr(ledger, "rules", lambda: "99")
    store = Store.open(tmp_path / "r")
    assert read_report(store) == diagnose(store)
    (tmp_path / "r" / "incidents.jsonl").unlink()
    assert read_report(store) == diagnose(store)
    assert read_report(store, since_ns=at(40)).wrong == ()
    assert len(judged) == 3


def test_a_ledger_that_no_process_keeps_is_brought_up_to_date_in_memory(tmp_path: Path) -> None:
    GrowingRecording(tmp_path / "r", drawn_incident()).grow(60)
    assert len(current_ledger(tmp_path / "r").incidents()) == 1
    assert not (tmp_path / "r" / "incidents.jsonl").exists()
