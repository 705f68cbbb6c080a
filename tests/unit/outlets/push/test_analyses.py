"""When a pinned window is judged: soon, seldom while it grows, for good at its end; and the process
that does it.
"""

import os
import stat
from itertools import pairwise
from pathlib import Path

import pytest

from necroscope.outlets.push import analyses
from necroscope.outlets.push.analyses import AnalysisProcess, Due, next_due, note
from necroscope.segment.recording import Pin

NS = 1_000_000_000
PIN = Pin(1000 * NS, 1420 * NS, "saturated")


def due(
    last_s: float,
    analysed: dict[str, list[int]] | None = None,
    *,
    pin: Pin = PIN,
    is_ended: bool = False,
) -> Due | None:
    return next_due([pin], analysed or {}, (0, round(last_s * NS)), is_ended=is_ended)


def test_a_first_verdict_comes_soon_and_the_last_at_the_end() -> None:
    assert due(1310) is None
    early = due(1335)
    assert early == Due("1000000000000", 1000 * NS, 1335 * NS + 1, 0, is_final=False)
    analysed: dict[str, list[int]] = {}
    note(analysed, early, [PIN])
    assert due(1360, analysed) is None
    final = due(1425, analysed)
    assert final == Due("1000000000000", 1000 * NS, 1420 * NS, 0, is_final=True)
    note(analysed, final, [PIN])
    assert due(2000, analysed) is None


def test_a_window_of_a_recording_that_ended_is_judged_as_far_as_it_goes() -> None:
    final = due(1310, is_ended=True)
    assert final is not None
    assert (final.to_ns, final.is_final) == (1310 * NS + 1, True)
    analysed: dict[str, list[int]] = {}
    note(analysed, final, [PIN])
    assert due(1310, analysed, is_ended=True) is None


def test_a_pin_that_grows_is_looked_at_now_and_then_and_judged_by_the_hour() -> None:
    pin = Pin(1000 * NS, 9000 * NS, "saturated")
    analysed: dict[str, list[int]] = {}
    looked = []
    for last_s in range(1300, 9100, 10):
        found = due(last_s, analysed, pin=pin)
        if found is not None:
            looked.append((last_s, found.is_final, found.from_ns // NS, found.to_ns // NS))
            note(analysed, found, [pin])
    assert [entry for entry in looked if entry[1]] == [
        (4600, True, 1000, 4600),
        (8200, True, 4300, 8200),
        (9000, True, 7900, 9000),
    ]
    assert all(later[0] - sooner[0] >= 90 for sooner, later in pairwise(looked))
    assert len(looked) <= 16


def test_a_pin_that_grew_after_its_verdict_is_judged_from_there_on() -> None:
    analysed = {"1000000000000": [1420 * NS, 1420 * NS]}
    grown = Pin(1000 * NS, 1600 * NS, "saturated")
    found = due(1700, analysed, pin=grown)
    assert found == Due("1000000000000", 1120 * NS, 1600 * NS, 1420 * NS, is_final=True)


def test_the_newest_window_is_first_and_one_that_is_gone_is_passed_over() -> None:
    pins = [
        Pin(0, 100 * NS, "gone"),
        Pin(1000 * NS, 1100 * NS, "old"),
        Pin(2000 * NS, 2100 * NS, "new"),
    ]
    found = next_due(pins, {}, (500 * NS, 9000 * NS), is_ended=False)
    assert found is not None
    assert found.key == str(2000 * NS)
    assert next_due(pins[:1], {}, (500 * NS, 9000 * NS), is_ended=False) is None


def test_what_is_known_of_pins_that_are_gone_is_forgotten() -> None:
    analysed = {"1": [2, 2]}
    note(analysed, Due("5", 5, 6, 0, is_final=True), [Pin(5, 6, "x")])
    assert analysed == {"5": [6, 6]}


@pytest.fixture
def fake_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in place of the interpreter; it is given the module and its arguments."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(analyses.sys, "executable", str(program))
    return program


def run(process: AnalysisProcess) -> analyses.Judged:
    process.start(Due("5", 5, 6, 0, is_final=True))
    for _ in range(100):
        process.wait(0.1)
        if (judged := process.take()) is not None:
            return judged
    raise AssertionError("it does not end")


def test_a_process_that_fails_is_told_with_its_last_word(tmp_path: Path, fake_child: Path) -> None:
    fake_child.write_text("#!/bin/sh\necho first >&2; echo last word >&2; exit 3\n")
    assert (
        run(AnalysisProcess(tmp_path, tmp_path / "work")).trouble
        == "the analysis ended with 3: last word"
    )
    assert not (tmp_path / "work").exists()


def test_a_process_that_leaves_nothing_is_told(tmp_path: Path, fake_child: Path) -> None:
    assert fake_child.exists()
    assert "left nothing" in str(run(AnalysisProcess(tmp_path, tmp_path / "work")).trouble)


def test_a_process_that_takes_too_long_is_killed(tmp_path: Path, fake_child: Path) -> None:
    fake_child.write_text("#!/bin/sh\nexec sleep 600\n")
    now = [0.0]
    process = AnalysisProcess(tmp_path, tmp_path / "work", lambda: now[0])
    process.start(Due("5", 5, 6, 0, is_final=True))
    assert process.take() is None
    now[0] = 301.0
    judged = process.take()
    assert judged is not None
    assert judged.trouble == "the analysis took longer than 300 s"
    assert not process.is_busy


def test_closing_ends_the_process(tmp_path: Path, fake_child: Path) -> None:
    fake_child.write_text("#!/bin/sh\nexec sleep 600\n")
    process = AnalysisProcess(tmp_path, tmp_path / "work")
    process.start(Due("5", 5, 6, 0, is_final=True))
    child = process._child
    assert child is not None
    process.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
