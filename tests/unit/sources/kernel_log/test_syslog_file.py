"""A syslog file as the last fallback: its stamps, and following it through rotation."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from necroscope.errors import SourceUnavailable
from necroscope.model.units import NS_PER_S
from necroscope.sources.kernel_log.byte_lines import PENDING_LIMIT
from necroscope.sources.kernel_log.syslog_file import HISTORY_BYTES, SyslogReader, parse

NOW_NS = int(datetime(2026, 1, 2, 12, 0, tzinfo=UTC).timestamp()) * NS_PER_S


@pytest.fixture(autouse=True)
def _zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def booted_at(boot_ns: int):  # type: ignore[no-untyped-def]
    return lambda log_clock_ns: log_clock_ns + boot_ns


def at(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp() * 1_000_000) * 1000


@pytest.mark.parametrize(
    ("raw", "time"),
    [
        (b"Jan  2 11:59:58 host kernel: text", "2026-01-02T11:59:58Z"),
        (b"Nov 15 22:03:13 host kernel: text", "2025-11-15T22:03:13Z"),
        (b"2026-01-02T13:59:58.250000+02:00 host kernel: text", "2026-01-02T11:59:58.250Z"),
        (b"2026-01-02T11:59:58Z host kernel: text", "2026-01-02T11:59:58Z"),
    ],
)
def test_stamps_of_both_kinds(raw: bytes, time: str) -> None:
    line = parse(raw, NOW_NS, booted_at(0), True)
    assert line is not None
    assert (line.time_ns, line.text) == (at(time), "text")


def test_the_kernels_own_stamp_is_finer_if_it_is_of_this_boot() -> None:
    raw = b"Jan  2 11:59:58 host kernel: [12345.678901] text"
    this_boot = at("2026-01-02T11:59:58.5Z") - 12_345_678_901_000
    line = parse(raw, NOW_NS, booted_at(this_boot), True)
    assert line is not None
    assert (line.time_ns, line.sequence, line.text) == (
        at("2026-01-02T11:59:58.5Z"),
        12_345_678_901,
        "text",
    )
    earlier = parse(raw, NOW_NS, booted_at(this_boot + 3600 * NS_PER_S), True)
    assert earlier is not None
    assert (earlier.time_ns, earlier.sequence) == (at("2026-01-02T11:59:58Z"), None)
    anybodys = parse(raw, NOW_NS, booted_at(this_boot), False)
    assert anybodys is not None
    assert anybodys.sequence is None


def test_tabs_that_rsyslog_wrote_as_octal_are_spaces_again() -> None:
    line = parse(
        b"Jan  2 11:59:58 host kernel: [1.000000] rcu: #0111-....: (8382 ticks this GP)",
        NOW_NS,
        booted_at(0),
        True,
    )
    assert line is not None
    assert line.text == "rcu:  1-....: (8382 ticks this GP)"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"Jan  2 11:59:58 host sshd[1]: kernel: x",
        b"Xxx 99 99:99:99 host kernel: x",
        b"2026-99-99T00:00:00 h kernel: x",
        b"\xff\x00\x1b",
    ],
)
def test_what_is_no_line_of_the_kernels_is_none(raw: bytes) -> None:
    assert parse(raw, NOW_NS, booted_at(0), True) is None


def opened(path: Path) -> SyslogReader:
    return SyslogReader(path, booted_at(0), True, lambda: NOW_NS)


def write(path: Path, *texts: str) -> None:
    with path.open("a") as file:
        file.writelines(f"Jan  2 11:00:00 host kernel: {text}\n" for text in texts)


def texts(reader: SyslogReader) -> list[str]:
    return [line.text for line in reader.read_lines(1000)]


def test_new_lines_are_followed_and_half_lines_wait(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    write(path, "one")
    reader = opened(path)
    assert texts(reader) == ["one"]
    assert texts(reader) == []
    with path.open("a") as file:
        file.write("Jan  2 11:00:01 host kernel: tw")
    assert texts(reader) == []
    with path.open("a") as file:
        file.write("o\n")
    assert texts(reader) == ["two"]
    reader.close()


def test_rotation_by_rename_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    write(path, "one")
    reader = opened(path)
    assert texts(reader) == ["one"]
    reader.take_gaps(0)
    path.rename(tmp_path / "kern.log.1")
    write(tmp_path / "kern.log.1", "two")
    assert texts(reader) == ["two"]
    write(path, "three")
    assert texts(reader) == ["three"]
    assert reader.take_gaps(0) == []
    reader.close()


def test_a_file_cut_in_place_is_read_from_its_start_with_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    write(path, "one", "two")
    reader = opened(path)
    assert texts(reader) == ["one", "two"]
    reader.take_gaps(0)
    os.truncate(path, 0)
    write(path, "three")
    assert texts(reader) == ["three"]
    assert [(gap.table, gap.cause) for gap in reader.take_gaps(5)] == [
        ("log", "syslog file was cut in place: lines may be lost")
    ]
    reader.close()


def test_only_the_tail_of_a_long_file_is_history(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    write(path, *(f"line {n}" for n in range(20_000)))
    reader = opened(path)
    lines = []
    while batch := texts(reader):
        lines += batch
    assert lines[-1] == "line 19999"
    assert len("\n".join(lines)) < HISTORY_BYTES
    reader.close()


def test_a_line_without_end_does_not_make_us_grow(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    path.write_bytes(b"x" * 200_000)
    reader = opened(path)
    assert texts(reader) == []
    assert len(reader._lines._pending) <= PENDING_LIMIT
    reader.close()


def test_severity_is_not_known_and_that_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    write(path, "one")
    reader = opened(path)
    assert reader.fileno() is None
    assert [gap.cause for gap in reader.take_gaps(5)] == [
        "severity not known: a syslog file does not hold it"
    ]
    assert reader.take_gaps(6) == []
    reader.close()


def test_only_the_kernels_own_file_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "var/log").mkdir(parents=True)
    with pytest.raises(SourceUnavailable, match="none of /var/log/kern"):
        SyslogReader.open(tmp_path, booted_at(0))
    write(tmp_path / "var/log/messages", "one")
    reader = SyslogReader.open(tmp_path, booted_at(0))
    assert [line.by_kernel for line in reader.read_lines(9)] == [False]
    reader.close()
    write(tmp_path / "var/log/kern.log", "one")
    reader = SyslogReader.open(tmp_path, booted_at(0))
    assert reader.name.endswith("kern.log")
    assert [line.by_kernel for line in reader.read_lines(9)] == [False]
    reader.close()
    stamped = b"Jan  2 11:59:58 host kernel: [1.000000] one\n"
    (tmp_path / "var/log/kern.log").write_bytes(stamped)
    reader = SyslogReader.open(tmp_path, booted_at(at("2026-01-02T11:59:57Z")))
    assert [line.by_kernel for line in reader.read_lines(9)] == [True]
    reader.close()
