"""Each incident is told once: when it is over, or has gone on for a minute; also by the next
process.
"""

from collections.abc import Callable

from tests.drawn_node import at

from necroscope.outlets.notify.judged import Judged, Judgement
from necroscope.outlets.notify.new_incidents import NewIncidents
from necroscope.segment.recording import Pin

MakeIncident = Callable[..., Judged]
PINS = [Pin(at(-100), at(130), "saturated")]


def judgement(end_s: float, *incidents: Judged, is_live: bool = True) -> Judgement:
    return Judgement(at(end_s), is_live, {}, incidents)


def test_nothing_is_judged_until_the_recorder_pins_something() -> None:
    new = NewIncidents(at(0))
    assert new.from_ns([], at(10)) is None
    assert new.from_ns([Pin(at(-50), at(-1), "old")], at(10)) is None
    assert new.from_ns(PINS, at(10)) == at(-600)


def test_an_incident_is_told_when_it_is_over_and_never_again(incident: MakeIncident) -> None:
    new = NewIncidents(at(0))
    assert new.news(judgement(12, incident(10, 12)), PINS) == []
    (told,) = new.news(judgement(40, incident(10, 20)), PINS)
    assert told.to_ns == at(20)
    assert new.news(judgement(50, incident(10, 20)), PINS) == []
    assert new.news(judgement(60, incident(9.5, 21)), PINS) == []


def test_one_that_goes_on_is_told_after_a_minute_and_not_when_it_ends(
    incident: MakeIncident,
) -> None:
    new = NewIncidents(at(0))
    assert new.news(judgement(60, incident(10, 60)), PINS) == []
    assert len(new.news(judgement(72, incident(10, 72)), PINS)) == 1
    assert new.news(judgement(300, incident(10, 300)), PINS) == []
    # The stretch that is judged no longer reaches back to its start.
    assert new.news(judgement(900, incident(280, 880)), PINS) == []


def test_another_core_and_a_later_time_are_other_incidents(incident: MakeIncident) -> None:
    new = NewIncidents(at(0))
    assert (
        len(
            new.news(
                judgement(60, incident(10, 20, 1), incident(10, 20, 2), incident(10, 20, None)),
                PINS,
            )
        )
        == 3
    )
    assert len(new.news(judgement(90, incident(30, 40, 1)), PINS)) == 1


def test_the_next_process_knows_what_was_told(incident: MakeIncident) -> None:
    new = NewIncidents(at(0))
    new.news(judgement(40, incident(10, 20)), PINS)
    again = NewIncidents.from_json(new.as_json())
    assert again.news(judgement(50, incident(10, 20)), PINS) == []
    assert again.judged_until_ns == at(50)


def test_what_happened_long_before_is_no_news(incident: MakeIncident) -> None:
    new = NewIncidents(at(600))
    assert new.news(judgement(700, incident(10, 20), incident(580, 590)), PINS) != []
    assert [told.from_ns for told in new._told] == [at(580)]


def test_an_unfinished_one_is_judged_again_though_its_window_is_over(
    incident: MakeIncident,
) -> None:
    new = NewIncidents(at(0))
    new.news(judgement(140, incident(138, 140)), PINS)
    assert new.from_ns(PINS, at(145)) == at(138 - 600)
    new.news(judgement(160, incident(138, 150)), PINS)
    assert new.from_ns(PINS, at(165)) is None


def test_when_nobody_records_any_more_everything_is_over_and_judged_once(
    incident: MakeIncident,
) -> None:
    new = NewIncidents(at(0))
    assert len(new.news(judgement(20, incident(10, 20), is_live=False), PINS)) == 1
    assert new.from_ns(PINS, at(60)) is None


def test_a_recorder_that_is_back_is_followed_from_where_it_ended(incident: MakeIncident) -> None:
    new = NewIncidents(at(0))
    new.news(judgement(20, is_live=False), PINS)
    pins = [Pin(at(-100), at(190), "saturated")]
    assert new.from_ns(pins, at(70)) is not None
    assert len(new.news(judgement(70, incident(40, 60)), pins)) == 1


def test_what_is_remembered_is_bounded(incident: MakeIncident) -> None:
    new = NewIncidents(at(0))
    for number in range(600):
        new.news(judgement(100 * number + 50, incident(100 * number, 100 * number + 1)), PINS)
    assert len(new._told) == 500


def test_of_one_that_goes_on_all_day_the_last_hour_is_judged(incident: MakeIncident) -> None:
    new = NewIncidents(at(0))
    new.news(judgement(100, incident(98, 100)), PINS)
    assert new.from_ns(PINS, at(90_000)) == at(90_000 - 3600)
