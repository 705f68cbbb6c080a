"""A pinned window makes rows urgent for a while."""

from pathlib import Path

from necroscope.outlets.push.alarms import Alarms
from necroscope.segment.recording import Pin, write_pins


def looks(alarms: Alarms, clock: list[float], recording: Path, seconds: int) -> list[float]:
    found = []
    for _ in range(seconds):
        clock[0] += 1
        if alarms.is_due(recording):
            found.append(clock[0])
    return found


def test_rows_are_urgent_for_a_while_after_a_pin(tmp_path: Path) -> None:
    clock = [100.0]
    write_pins(tmp_path, [Pin(1, 2, "before the start")])
    alarms = Alarms(lambda: clock[0])
    assert not looks(alarms, clock, tmp_path, 10)
    write_pins(tmp_path, [Pin(1, 2, "before the start"), Pin(3, 4, "a rank died")])
    found = looks(alarms, clock, tmp_path, 60)
    assert found == [111.0, 116.0, 121.0, 126.0, 131.0]


def test_a_word_from_outside_makes_them_urgent_too(tmp_path: Path) -> None:
    clock = [100.0]
    alarms = Alarms(lambda: clock[0])
    alarms.ring()
    assert looks(alarms, clock, tmp_path, 10) == [101.0, 106.0]
