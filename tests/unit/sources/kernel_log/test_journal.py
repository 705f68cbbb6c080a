"""The journal as a fallback. There is no systemd journal here: a script named journalctl stands in
for the program.
"""

import json
import os
import select
from pathlib import Path

import pytest

from necroscope.errors import SourceUnavailable
from necroscope.sources.kernel_log.journal import RETRY_NS, JournalctlReader, parse
from necroscope.sources.kernel_log.line import LogLine

ENTRY = {
    "__REALTIME_TIMESTAMP": "1700000000123456",
    "_SOURCE_MONOTONIC_TIMESTAMP": "5000000",
    "PRIORITY": "3",
    "SYSLOG_FACILITY": "0",
    "SYSLOG_IDENTIFIER": "kernel",
    "_TRANSPORT": "kernel",
    "MESSAGE": "ena 0000:00:05.0 eth0: Trigger reset is on",
}


ENTRY_WITHOUT_FACILITY = {name: value for name, value in ENTRY.items() if name != "SYSLOG_FACILITY"}


def to_time_ns(log_clock_ns: int) -> int:
    return log_clock_ns + 1_000


def entry(**changes: object) -> bytes:
    return json.dumps({**ENTRY, **changes}).encode()


def parsed(raw: bytes) -> LogLine:
    line = parse(raw, to_time_ns)
    assert line is not None
    return line


def test_an_entry_has_the_kernels_own_time() -> None:
    line = parsed(entry())
    assert (line.time_ns, line.sequence, line.severity, line.facility, line.by_kernel) == (
        5_000_001_000,
        5_000_000,
        3,
        0,
        True,
    )
    assert line.text == "ena 0000:00:05.0 eth0: Trigger reset is on"


def test_an_entry_without_the_kernels_time_has_the_journals() -> None:
    line = parsed(entry(_SOURCE_MONOTONIC_TIMESTAMP=None))
    assert (line.time_ns, line.sequence) == (1_700_000_000_123_456_000, None)


def test_an_entry_that_is_read_again_has_the_same_key_however_the_clocks_are_measured_then() -> (
    None
):
    line = parsed(entry())
    again = parse(entry(), lambda log_clock_ns: log_clock_ns + 1_700)
    assert again is not None
    assert line.time_ns != again.time_ns
    assert line.sequence == again.sequence == 5_000_000


def test_what_a_daemon_wrote_to_kmsg_is_not_by_the_kernel() -> None:
    assert not parsed(entry(SYSLOG_FACILITY="3")).by_kernel
    assert not parsed(entry(_TRANSPORT="syslog")).by_kernel
    assert not parsed(json.dumps(ENTRY_WITHOUT_FACILITY).encode()).by_kernel


def test_a_message_of_bytes_is_read() -> None:
    assert parsed(entry(MESSAGE=[0xFF, 0x41, 0x0A, 0x42])).text == "\\xffA\\x0aB"
    assert parse(entry(MESSAGE=None), to_time_ns) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"{}",
        b'{"MESSAGE":[999]}',
        b"[" * 5000,
        entry(PRIORITY="x"),
        b"\xff",
    ],
)
def test_what_is_no_entry_gives_nothing(raw: bytes) -> None:
    assert parse(raw, to_time_ns) is None


class Clock:
    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with a journal in it, and a fake journalctl first on PATH, which prints `out` and then
    does as `then` says.
    """
    root, programs = tmp_path / "root", tmp_path / "bin"
    (root / "var/log/journal/0123").mkdir(parents=True)
    (root / "var/log/journal/0123/system.journal").touch()
    programs.mkdir()
    script = programs / "journalctl"
    script.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/arguments\ncat {tmp_path}/out\nexec sh'
        f" {tmp_path}/then\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (tmp_path / "out").write_bytes(entry() + b"\n")
    (tmp_path / "then").write_text("exec sleep 60")
    return tmp_path


def wait_readable(reader: JournalctlReader) -> None:
    descriptor = reader.fileno()
    assert descriptor is not None
    assert select.select([descriptor], [], [], 20)[0]


def test_the_child_is_read_without_waiting_and_killed_on_close(journal: Path) -> None:
    reader = JournalctlReader.open(journal / "root", to_time_ns)
    wait_readable(reader)
    assert [line.text for line in reader.read_lines(10)] == [ENTRY["MESSAGE"]]
    assert reader.read_lines(10) == []
    assert reader._child is not None
    pid = reader._child.pid
    reader.close()
    assert reader.fileno() is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    arguments = (journal / "arguments").read_text()
    assert "--dmesg --follow --output=json --directory" in arguments
    assert "--lines=2000" in arguments


def test_a_child_that_ends_is_a_failure_and_starts_again_after_a_pause(journal: Path) -> None:
    (journal / "out").write_bytes(b"")
    (journal / "then").write_text("exit 1")
    clock = Clock()
    opened = JournalctlReader.open(journal / "root", to_time_ns)
    reader = JournalctlReader(opened._command, to_time_ns, clock)
    opened.close()
    wait_readable(reader)
    with pytest.raises(SourceUnavailable, match="journalctl ended"):
        reader.read_lines(10)
    with pytest.raises(SourceUnavailable, match="journalctl ended"):
        reader.read_lines(10)
    assert reader.fileno() is None
    (journal / "then").write_text("exec sleep 60")
    clock.now_ns = RETRY_NS
    assert reader.read_lines(10) == []
    assert [(gap.table, gap.cause) for gap in reader.take_gaps(7)] == [
        ("events", "journalctl ended and was started again"),
        ("log", "journalctl ended and was started again"),
    ]
    assert reader.fileno() is not None
    reader.close()


def test_the_last_lines_of_a_child_that_ends_are_kept(journal: Path) -> None:
    (journal / "then").write_text("exit 1")
    reader = JournalctlReader.open(journal / "root", to_time_ns)
    assert reader._child is not None
    reader._child.wait(20)
    assert [line.text for line in reader.read_lines(10)] == [ENTRY["MESSAGE"]]
    with pytest.raises(SourceUnavailable, match="journalctl ended"):
        reader.read_lines(10)


def test_without_a_journal_or_a_program_it_says_which_is_missing(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SourceUnavailable, match=r"no journal$"):
        JournalctlReader.open(tmp_path / "empty", to_time_ns)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(SourceUnavailable, match="no journalctl"):
        JournalctlReader.open(journal / "root", to_time_ns)
