"""Windows that the judging process asks for are checked before they are pinned."""

import pytest
from tests.drawn_node import at

from necroscope import settings
from necroscope.model.units import NS_PER_S
from necroscope.recorder.memory import MemorySegment
from necroscope.recorder.requested_windows import RequestedWindows
from necroscope.segment.recording import Pin


class Pins(MemorySegment):
    def __init__(self) -> None:
        self.kept: list[Pin] = []

    def pin(self, pin: Pin) -> None:
        self.kept.append(pin)


def kept(*lines: str) -> list[Pin]:
    sink = Pins()
    RequestedWindows(sink, settings.parse({})).keep(lines)
    return sink.kept


def test_an_incident_is_kept_with_what_is_around_it() -> None:
    assert kept("", f"{at(100)} {at(110)} cpu-quota-throttle") == [
        Pin(at(100) - 300 * NS_PER_S, at(110) + 120 * NS_PER_S, "incident: cpu-quota-throttle")
    ]


@pytest.mark.parametrize(
    "line",
    [
        f"{at(10)} {at(5)} rt-hog",
        f"{at(0)} {at(4000)} rt-hog",
        f"-5 {at(0)} rt-hog",
        f"{at(0)} {10**19 - 1} rt-hog",
        f"{at(0)} {at(5)} <script>",
        f"{at(0)} {at(5)}",
        f"{at(0)} {at(5)} rt-hog more",
    ],
)
def test_what_is_not_a_window_is_passed_over(line: str) -> None:
    assert kept(line) == []


def test_of_many_at_once_a_few_are_kept_and_the_others_at_the_next_calls() -> None:
    sink = Pins()
    requested = RequestedWindows(sink, settings.parse({}))
    requested.keep([f"{at(n)} {at(n + 1)} rt-hog" for n in range(50)])
    assert len(sink.kept) == 20
    requested.keep([])
    requested.keep([])
    assert len(set(sink.kept)) == 50
