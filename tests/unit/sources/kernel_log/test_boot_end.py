"""How a boot ended, by its last words: what is reported, when, and what is kept quiet."""

from pathlib import Path

import pytest

from necroscope.model.earlier_boot import EarlierBoot
from necroscope.model.reading import Moment
from necroscope.sources.kernel_log.boot_end import BootEnd, Words, describe_end
from necroscope.sources.kernel_log.line import LogLine

NS = 1_000_000_000
RECORDED_TO_NS = 1_760_000_000 * NS
CUT = EarlierBoot("b" * 32, RECORDED_TO_NS, is_cut=True)
ENDED = EarlierBoot("b" * 32, RECORDED_TO_NS, is_cut=False)
PANIC = "Kernel panic - not syncing: Fatal exception in interrupt"
LOCKUP = "watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [kubelet:4242]"


def line(seconds: float, text: str, *, by_kernel: bool = True) -> LogLine:
    return LogLine(RECORDED_TO_NS + round(seconds * NS), None, 4, 0, by_kernel, text)


def kinds(earlier: EarlierBoot, *lines: LogLine, place: str = "pstore") -> list[str]:
    return [event.kind for event in describe_end(earlier, Words(place, list(lines)))]


def test_a_panic_is_an_event_and_the_end_says_how_much_is_recorded() -> None:
    events = describe_end(CUT, Words("pstore", [line(1, LOCKUP), line(3, PANIC)]))
    assert [event.kind for event in events] == ["soft_lockup", "kernel_panic", "boot_ended"]
    end = events[-1]
    assert "Fatal exception in interrupt (pstore)" in end.message
    assert "3 s before its end" in end.message
    assert end.time_ns == RECORDED_TO_NS + 3 * NS
    assert LOCKUP in (end.lines or "")


def test_what_the_recorder_heard_itself_is_no_event_again() -> None:
    assert kinds(CUT, line(-30, LOCKUP), line(3, PANIC)) == ["kernel_panic", "boot_ended"]


def test_an_end_without_words_is_reported_all_the_same() -> None:
    [end] = describe_end(CUT, Words())
    assert end.kind == "boot_ended"
    assert "loss of power" in end.message


@pytest.mark.parametrize("last", ["Journal stopped", "reboot: Restarting system"])
def test_a_shutdown_is_no_end_to_report(last: str) -> None:
    assert kinds(CUT, line(1, last, by_kernel=False), place="the journal") == []


def test_a_recorder_that_was_stopped_before_a_reboot_reports_nothing() -> None:
    assert kinds(ENDED) == []
    assert kinds(ENDED, line(600, PANIC)) == ["kernel_panic", "boot_ended"]


def test_a_panic_that_a_program_wrote_to_the_log_is_not_the_kernels() -> None:
    events = describe_end(CUT, Words("pstore", [line(1, PANIC, by_kernel=False)]))
    assert all(not event.by_kernel for event in events)
    assert "no panic and no shutdown" in events[-1].message


def test_it_is_read_once_in_the_background() -> None:
    asked = []

    def find(root: Path, earlier: EarlierBoot) -> Words:
        asked.append(root)
        return Words("pstore", [line(3, PANIC)])

    source = BootEnd(Path("/nowhere"), CUT, find=find)
    rows = []
    for tick in range(200):
        reading = source.read(Moment(RECORDED_TO_NS + tick * NS, tick * NS))
        rows += reading.rows["events"]
        if rows:
            break
        source._background.wait(1)
    assert len(rows) == 2
    assert source.idle_until_ns > 1 << 60
    assert len(asked) == 1
    source.close()
