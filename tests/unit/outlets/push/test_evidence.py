"""When the evidence of a pinned window is packed: when the window is over, by the hour where it goes
on; and the process that does it.
"""

import os
import stat
from pathlib import Path

import pytest

from necroscope.model.span import Span
from necroscope.outlets.push import evidence
from necroscope.outlets.push.evidence import (
    EvidenceProcess,
    WindowDue,
    WindowEvidence,
    next_due,
    note,
)
from necroscope.segment.recording import Pin

NS = 1_000_000_000
PIN = Pin(1000 * NS, 1420 * NS, "saturated")


def due(
    last_s: float,
    packed: dict[str, int] | None = None,
    *,
    pin: Pin = PIN,
    is_ended: bool = False,
) -> WindowDue | None:
    return next_due([pin], packed or {}, (0, round(last_s * NS)), is_ended=is_ended)


def test_a_window_is_packed_once_when_it_is_over() -> None:
    assert due(1419) is None
    found = due(1425)
    assert found == WindowDue("1000000000000", Span(1000 * NS, 1420 * NS), 0)
    packed: dict[str, int] = {}
    note(packed, found, [PIN])
    assert due(2000, packed) is None


def test_a_window_of_a_recording_that_ended_is_packed_as_far_as_it_goes() -> None:
    found = due(1310, is_ended=True)
    assert found is not None
    assert found.span.to_ns == 1310 * NS + 1
    packed: dict[str, int] = {}
    note(packed, found, [PIN])
    assert due(1310, packed, is_ended=True) is None


def test_a_pin_that_grows_is_packed_by_the_hour() -> None:
    pin = Pin(1000 * NS, 9000 * NS, "saturated")
    packed: dict[str, int] = {}
    pieces = []
    for last_s in range(1300, 9100, 10):
        found = due(last_s, packed, pin=pin)
        if found is not None:
            pieces.append((last_s, found.span.from_ns // NS, found.span.to_ns // NS))
            note(packed, found, [pin])
    assert pieces == [(4600, 1000, 4600), (8200, 4300, 8200), (9000, 7900, 9000)]


def test_a_pin_that_grew_after_it_was_packed_is_packed_from_there_on() -> None:
    grown = Pin(1000 * NS, 1600 * NS, "saturated")
    found = due(1700, {"1000000000000": 1420 * NS}, pin=grown)
    assert found == WindowDue("1000000000000", Span(1120 * NS, 1600 * NS), 1420 * NS)


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
    packed = {"1": 2}
    note(packed, WindowDue("5", Span(5, 6), 0), [Pin(5, 6, "x")])
    assert packed == {"5": 6}


@pytest.fixture
def fake_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in place of the interpreter; it is given the module and its arguments."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(evidence.sys, "executable", str(program))
    return program


def run(process: EvidenceProcess) -> WindowEvidence:
    process.start(WindowDue("5", Span(5, 6), 0))
    for _ in range(100):
        process.wait(0.1)
        if (judged := process.take()) is not None:
            return judged
    raise AssertionError("it does not end")


def test_a_process_that_fails_is_reported_with_its_last_word(
    tmp_path: Path, fake_child: Path
) -> None:
    fake_child.write_text("#!/bin/sh\necho first >&2; echo last word >&2; exit 3\n")
    assert (
        run(EvidenceProcess(tmp_path, tmp_path / "work")).trouble
        == "packing the evidence ended with 3: last word"
    )
    assert not (tmp_path / "work").exists()


def test_a_process_that_leaves_nothing_is_reported(tmp_path: Path, fake_child: Path) -> None:
    assert fake_child.exists()
    assert "left nothing" in str(run(EvidenceProcess(tmp_path, tmp_path / "work")).trouble)


def test_a_process_that_takes_too_long_is_killed(tmp_path: Path, fake_child: Path) -> None:
    fake_child.write_text("#!/bin/sh\nexec sleep 600\n")
    now = [0.0]
    process = EvidenceProcess(tmp_path, tmp_path / "work", lambda: now[0])
    process.start(WindowDue("5", Span(5, 6), 0))
    assert process.take() is None
    now[0] = 301.0
    judged = process.take()
    assert judged is not None
    assert judged.trouble == "packing the evidence took longer than 300 s"
    assert not process.is_busy


def test_closing_ends_the_process(tmp_path: Path, fake_child: Path) -> None:
    fake_child.write_text("#!/bin/sh\nexec sleep 600\n")
    process = EvidenceProcess(tmp_path, tmp_path / "work")
    process.start(WindowDue("5", Span(5, 6), 0))
    child = process._child
    assert child is not None
    process.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
