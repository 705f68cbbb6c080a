"""What is announced of the ledger, and what is not: decisions without I/O."""

import json

from tests.drawn_node import at
from tests.unit.outlets.notify.conftest import MakeEntry

from necroscope.analysis.report import Origin
from necroscope.outlets.notify.announcements import Announcements, News
from necroscope.verdicts.entry import IncidentState, LedgerEntry


def test_an_incident_is_announced_when_opened_and_when_it_is_over(entry: MakeEntry) -> None:
    news = Announcements()
    states = []
    for state, to_s in (("open", 24), ("open", 60), ("closed", 80), ("closed", 80)):
        found = news.take([entry(10, to_s, state=state)], at(to_s))
        states += [(one.entry.state.value, one.news) for one in found]
    assert states == [("open", News.FIRST), ("closed", News.END)]


def test_one_that_was_over_before_it_was_seen_is_announced_once(entry: MakeEntry) -> None:
    news = Announcements()
    assert [one.news for one in news.take([entry(10, 20)], at(30))] == [News.FIRST]
    assert news.take([entry(10, 20)], at(30)) == []


def test_what_was_long_over_at_the_first_start_is_no_news(entry: MakeEntry) -> None:
    news = Announcements()
    found = news.take([entry(10, 20), entry(900, 910), entry(30, 990, state="open")], at(1000))
    assert [one.entry.id for one in found] == ["900-core1", "30-core1"]


def test_the_past_that_is_judged_later_is_no_news(entry: MakeEntry) -> None:
    news = Announcements()
    assert news.take([], at(5000)) == []
    assert news.take([entry(10, 20)], at(5100)) == []


def test_nothing_is_announced_before_the_ledger_says_how_far_it_reaches(entry: MakeEntry) -> None:
    assert Announcements().take([entry()], None) == []


def test_a_recording_ahead_of_the_clock_is_announced_all_the_same(entry: MakeEntry) -> None:
    ahead_s = 7200
    assert Announcements().take([entry(ahead_s, ahead_s + 10)], at(ahead_s + 20))


def test_whoever_was_reported_of_a_part_is_not_told_of_the_whole(entry: MakeEntry) -> None:
    news = Announcements()
    part = entry(20, 30)
    news.take([part], at(40))
    merged = LedgerEntry(IncidentState.MERGED, 2, part.incident, "10-core1")
    assert news.take([merged, entry(10, 30)], at(60)) == []


def test_it_is_remembered_across_restarts_and_forgotten_with_the_ledger(entry: MakeEntry) -> None:
    news = Announcements()
    news.take([entry(10, 20)], at(30))
    again = Announcements.from_json(json.loads(json.dumps(news.as_json())))
    assert again.take([entry(10, 20)], at(9000)) == []
    again.forget({})
    assert again.as_json()["announced"] == {}


def test_another_answer_is_announced_and_other_words_for_the_same_are_not(entry: MakeEntry) -> None:
    news = Announcements()
    news.take([entry(10, 20)], at(30))
    assert news.take([entry(10, 20, summary="in other words")], at(40)) == []
    maker = Origin("unit", "ecs.service")
    (update,) = news.take([entry(10, 20, origin=maker)], at(40))
    assert update.news is News.UPDATE
    again = Announcements.from_json(json.loads(json.dumps(news.as_json())))
    assert again.take([entry(10, 20, origin=maker)], at(50)) == []


def test_of_what_an_older_version_announced_the_answer_is_not_known(entry: MakeEntry) -> None:
    news = Announcements(at(0), {"10-core1": "closed"})
    assert news.take([entry(10, 20)], at(30)) == []
    assert news.take([entry(10, 20, origin=Origin("unit", "ecs.service"))], at(30))
