"""What `--watch` tells, and when: once while it goes on, once when it is over."""

from tests.drawn_node import at, drawn_node

from necroscope.analysis.engine import diagnose
from necroscope.cli.diagnose_watch import Told

NODE = """
    core 0:  ........................................................................
    core 1:  ..........xxxxxxxxxxxxxxxxxxxx..........................................
    x: system  tool[44]  /  main > odd_driver_loop
"""


def news(told: Told, until: int, *, is_ended: bool = False) -> list[str]:
    return told.news(
        diagnose(drawn_node(NODE), span=(at(0), at(until))), at(until), is_ended=is_ended
    )


def test_an_incident_is_told_while_it_goes_on_and_again_when_it_is_over() -> None:
    told = Told(100)
    assert news(told, 8) == []
    (first,) = news(told, 20)
    assert "since 2025-10-09 08:53:30 UTC, still going on" in first
    assert news(told, 25) == []
    (last,) = news(told, 45)
    assert "2025-10-09 08:53:30 to 08:53:50 UTC" in last
    assert "for 20.0 s" in last
    assert news(told, 60) == []


def test_what_is_already_over_is_told_once() -> None:
    told = Told(100)
    assert len(news(told, 60)) == 1
    assert news(told, 65) == []


def test_when_the_recording_ends_nothing_goes_on() -> None:
    told = Told(100)
    (text,) = news(told, 20, is_ended=True)
    assert "still going on" not in text


def test_one_that_began_before_the_window_keeps_its_start() -> None:
    told = Told(100)
    news(told, 20)
    report = diagnose(drawn_node(NODE), span=(at(22), at(45)))
    (text,) = told.news(report, at(45), is_ended=False)
    assert "2025-10-09 08:53:30 to 08:53:50 UTC" in text


def test_one_that_a_later_look_no_longer_sees_is_over_as_well() -> None:
    told = Told(100)
    assert len(news(told, 20)) == 1
    nothing = diagnose(drawn_node(NODE), span=(at(40), at(60)))
    assert told.news(nothing, at(22), is_ended=False) == []
    (last,) = told.news(nothing, at(60), is_ended=False)
    assert "08:53:30 to 08:53:39 UTC" in last
    assert told.since_ns(at(60)) == at(60)
    assert told.news(nothing, at(65), is_ended=False) == []
