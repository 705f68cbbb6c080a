"""What `record` says while it records; a real recorder runs in tests/integration/test_record.py."""

from types import SimpleNamespace

import pytest

from necroscope.cli.record import _live_text, _LiveLine
from necroscope.model.units import NS_PER_S
from necroscope.recorder.recorder import Status

DISK = SimpleNamespace(size_bytes=3 << 20, pauses=1)


def test_the_live_line_counts_by_the_tick_and_not_by_the_flush() -> None:
    status = Status(0, elapsed_ns=2 * NS_PER_S, samples=388, events=4, gaps=2, cpu_share=0.0141)
    assert _live_text(status, DISK) == "recording 2 s · 194 samples/s · 3 MiB · 4 events · 3 gaps · 1.4% of a core"


def test_the_live_line_ends_with_what_was_lost_and_what_came_last() -> None:
    status = Status(0, lost_samples=7, last_event="nic_reset: eth0")
    assert _live_text(status, DISK).endswith(
        "0 samples/s · 3 MiB · 0 events · 1 gaps · – of a core · 7 samples lost · nic_reset: eth0"
    )


def test_a_state_is_told_when_it_begins_and_a_happening_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    line = _LiveLine(quiet=True)
    for states, happenings in (
        (["pressure: no such file"], ["recording pauses: the disk is full"]),
        (["pressure: no such file", "budget: 48 Hz"], []),
        (["budget: 48 Hz"], ["recording goes on"]),
        (["pressure: no such file"], ["recording pauses: the disk is full"]),
        (["pressure: no such file"], ["recording goes on"]),
    ):
        line.tell_new(states)
        line.tell(happenings)
    assert capsys.readouterr().err.splitlines() == [
        "warning: pressure: no such file",
        "warning: recording pauses: the disk is full",
        "warning: budget: 48 Hz",
        "warning: recording goes on",
        "warning: pressure: no such file",
        "warning: recording pauses: the disk is full",
        "warning: recording goes on",
    ]
