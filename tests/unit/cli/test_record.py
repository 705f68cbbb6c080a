"""What `record` says, what ends it and what it leaves alone; a real recorder runs in
tests/integration/test_record.py.
"""

import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from necroscope.cli.record import _live_text, _LiveLine, _stop_on_signals, command
from necroscope.errors import RecordingBusy
from necroscope.model.units import NS_PER_S
from necroscope.recorder.recorder import Status
from necroscope.segment.lock import RecordingLock
from necroscope.segment.recording import Identity, make_recording, read_identity

DISK = SimpleNamespace(size_bytes=3 << 20, pauses=1)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def dispositions() -> Iterator[None]:
    """Of this process, as they were."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("dispositions")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_the_recorder_once_and_then_ends_the_process(number: signal.Signals) -> None:
    stopped: list[bool] = []
    signal.signal(number, signal.SIG_DFL)
    _stop_on_signals(SimpleNamespace(stop=lambda: stopped.append(True)))
    signal.raise_signal(number)
    assert (stopped, signal.getsignal(number)) == ([True], signal.SIG_DFL)


@pytest.mark.usefixtures("dispositions")
def test_nohup_is_heeded_and_a_script_can_end_what_it_started_in_the_background() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    _stop_on_signals(SimpleNamespace(stop=lambda: None))
    assert [number for number in SIGNALS if signal.getsignal(number) == signal.SIG_IGN] == [
        signal.SIGHUP
    ]


def test_a_second_recorder_does_not_touch_the_recording_of_the_first(tmp_path: Path) -> None:
    directory = tmp_path / "recording"
    make_recording(directory, Identity("node", "boot", "test", {"zone": "a"}))
    with RecordingLock(directory):
        done = CliRunner().invoke(command, ["--dir", str(directory), "--label", "zone=b"])
    assert isinstance(done.exception, RecordingBusy)
    assert read_identity(directory).labels == {"zone": "a"}


def test_the_live_line_counts_by_the_tick_and_not_by_the_flush() -> None:
    status = Status(0, elapsed_ns=2 * NS_PER_S, samples=388, events=4, gaps=2, cpu_share=0.0141)
    assert (
        _live_text(status, DISK)
        == "recording 2 s · 194 samples/s · 3 MiB · 4 events · 3 gaps · 1.4% of a core"
    )


def test_the_live_line_ends_with_what_was_lost_and_what_came_last() -> None:
    status = Status(0, lost_samples=7, last_event="nic_reset: eth0")
    assert _live_text(status, DISK).endswith(
        "0 samples/s · 3 MiB · 0 events · 1 gaps · – of a core · 7 samples lost · nic_reset: eth0"
    )


def test_a_state_that_comes_and_goes_is_printed_once_and_a_happening_each_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    times_s = iter((1, 2, 3, 4, 500, 1200))
    line = _LiveLine(quiet=True, clock=lambda: next(times_s))
    for states, happenings in (
        (["pressure: no such file"], ["recording pauses: the disk is full"]),
        (["pressure: no such file", "budget: 48 Hz"], []),
        (["budget: 48 Hz"], ["recording goes on"]),
        (["pressure: no such file"], ["recording pauses: the disk is full"]),
        (["pressure: no such file"], ["recording goes on"]),
        # Ten minutes without it, and it is news again.
        (["pressure: no such file"], []),
    ):
        line.tell_new(states)
        line.tell(happenings)
    assert capsys.readouterr().err.splitlines() == [
        "warning: pressure: no such file",
        "warning: recording pauses: the disk is full",
        "warning: budget: 48 Hz",
        "warning: recording goes on",
        "warning: recording pauses: the disk is full",
        "warning: recording goes on",
        "warning: pressure: no such file",
    ]


def test_an_epoch_that_is_over_is_followed_by_another_for_the_time_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_ns: list[int] = []

    def record_epoch(*words: object) -> tuple[Status, SimpleNamespace, bool]:
        left_ns.append(words[4])  # type: ignore[arg-type]
        return Status(0), DISK, len(left_ns) == 3

    monkeypatch.setattr("necroscope.cli.record._record", record_epoch)
    monkeypatch.setattr("necroscope.cli.record._report", lambda *_, **__: None)
    # Both would last as long as this process, and change what its other tests may do.
    monkeypatch.setattr("necroscope.cli.record._give_up_close_sight", lambda *_: None)
    monkeypatch.setattr("necroscope.cli.record._claim_priority", lambda: None)
    done = CliRunner().invoke(command, ["--dir", str(tmp_path / "recording"), "--for", "1h"])
    assert done.exit_code == 0, done.output
    assert 3600 * NS_PER_S >= left_ns[0] > left_ns[1] > left_ns[2] > 3500 * NS_PER_S
