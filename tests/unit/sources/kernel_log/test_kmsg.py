"""/dev/kmsg records: real ones, torn ones, lost ones. A socket of records stands in for the device:
one read, one record.
"""

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from necroscope.errors import SourceUnavailable
from necroscope.model.names import LINE_LIMIT
from necroscope.sources.kernel_log import kmsg
from necroscope.sources.kernel_log.kmsg import KmsgReader, Record, parse

RECORDS = (
    (Path(__file__).parents[3] / "data/kernel_log/kmsg_records.bin")
    .read_bytes()
    .rstrip(b"\0")
    .split(b"\0")
)
CLOCK_OFFSET_NS = 1_700_000_000_000_000_000


def to_time_ns(log_clock_ns: int) -> int:
    return log_clock_ns + CLOCK_OFFSET_NS


@pytest.fixture
def device() -> Iterator[tuple[socket.socket, KmsgReader]]:
    kernel, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    with kernel, ours:
        yield kernel, KmsgReader(ours.fileno(), to_time_ns)


def test_real_records_are_all_parsed() -> None:
    records = [parse(raw) for raw in RECORDS]
    assert [record.sequence for record in records if record] == list(range(160, 291))
    assert all(
        record is not None and record.text and b"SUBSYSTEM" not in record.text for record in records
    )


def test_a_record_has_its_dictionary_cut_off_and_its_escapes_undone() -> None:
    raw = (
        b"6,339,5140900,-,caller=T1;NET: caf\\xc3\\xa9\\x09tab\\x5cback\n SUBSYSTEM=acpi\n"
        b" DEVICE=+acpi:PNP0A03:00\n"
    )
    assert parse(raw) == Record(6, 339, 5140900, b"NET: caf\xc3\xa9\ttab\\back")


@pytest.mark.parametrize(
    "raw", [b"", b";", b"x", b"6,1;text", b"6,one,2,-;text", b"a,b,c,d;e", b"\xff\x00" * 4000]
)
def test_what_is_no_record_is_none(raw: bytes) -> None:
    assert parse(raw) is None


def test_priority_is_severity_and_facility(device: tuple[socket.socket, KmsgReader]) -> None:
    kernel, reader = device
    kernel.send(b"3,1,1000000,-;by the kernel\n")
    kernel.send(b"30,2,2000000,-;systemd[1]: by a daemon\n")
    first, second = reader.read_lines(10)
    assert (first.severity, first.facility, first.by_kernel, first.sequence) == (3, 0, True, 1)
    assert first.time_ns == CLOCK_OFFSET_NS + 1_000_000_000
    assert (second.severity, second.facility, second.by_kernel) == (6, 3, False)
    assert first.row() == (first.time_ns, 1, 3, 0, "by the kernel")
    assert reader.read_lines(10) == []


def test_a_record_of_many_lines_stays_one(device: tuple[socket.socket, KmsgReader]) -> None:
    kernel, reader = device
    kernel.send(
        b"3,7,1,-;ixgbe 0000:02:00.1 eth3: Detected Tx Unit Hang\\x0a  Tx Queue            "
        b" <6>\\x0a\n"
    )
    (line,) = reader.read_lines(10)
    assert line.text == (
        "ixgbe 0000:02:00.1 eth3: Detected Tx Unit Hang\\x0a  Tx Queue             <6>"
    )


def test_hostile_text_is_made_harmless(device: tuple[socket.socket, KmsgReader]) -> None:
    kernel, reader = device
    for sequence, text in enumerate(
        (b"\\x1b[2J\\x00\\x07bell", b"\\xff\\xfe raw", b"y" * 8100, b"\xff\x00\x1b")
    ):
        kernel.send(b"12,%d,1,-;%s\n" % (sequence, text))
    lines = reader.read_lines(10)
    assert [line.text for line in lines][:2] == ["\\x1b[2J\\x00\\x07bell", "\\xff\\xfe raw"]
    assert len(lines) == 4
    assert all(line.text.isprintable() and len(line.text) <= LINE_LIMIT for line in lines)


def test_a_jump_of_the_sequence_is_a_gap_with_its_count(
    device: tuple[socket.socket, KmsgReader],
) -> None:
    kernel, reader = device
    kernel.send(b"6,100,1000000,-;one\n")
    kernel.send(b"6,101,2000000,-;two\n")
    kernel.send(b"6,201,9000000,-;three\n")
    assert len(reader.read_lines(10)) == 3
    gaps = reader.take_gaps(0)
    assert [(gap.table, gap.lost) for gap in gaps] == [("events", 99), ("log", 99)]
    assert (gaps[0].from_ns, gaps[0].to_ns) == (
        to_time_ns(2_000_000_000),
        to_time_ns(9_000_000_000),
    )
    assert reader.take_gaps(0) == []


def test_the_start_of_a_wrapped_buffer_is_no_gap(device: tuple[socket.socket, KmsgReader]) -> None:
    kernel, reader = device
    kernel.send(b"6,5000,1000000,-;one\n")
    assert len(reader.read_lines(10)) == 1
    assert reader.take_gaps(0) == []


def test_overwritten_records_are_skipped_and_counted(
    device: tuple[socket.socket, KmsgReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[bytes | OSError] = [
        b"6,10,1000000,-;one\n",
        OSError(errno.EPIPE, "Broken pipe"),
        b"6,30,2000000,-;two\n",
        BlockingIOError(errno.EAGAIN, "again"),
    ]

    def read(_descriptor: int, _size: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(kmsg.os, "read", read)
    _, reader = device
    assert [line.text for line in reader.read_lines(10)] == ["one", "two"]
    assert [gap.lost for gap in reader.take_gaps(0)] == [19, 19]


def test_another_error_is_reported_and_the_next_read_tries_again(
    device: tuple[socket.socket, KmsgReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, reader = device
    with monkeypatch.context() as context:
        context.setattr(
            kmsg.os,
            "read",
            lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")),
        )
        with pytest.raises(SourceUnavailable, match="Input/output error"):
            reader.read_lines(10)
    kernel.send(b"6,1,1,-;back\n")
    assert [line.text for line in reader.read_lines(10)] == ["back"]


def test_what_is_no_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_text("6,1,1,-;text\n")
    with pytest.raises(SourceUnavailable, match="is not a device"):
        KmsgReader.open(tmp_path / "kmsg", to_time_ns)
    with pytest.raises(SourceUnavailable, match="No such file"):
        KmsgReader.open(tmp_path / "absent", to_time_ns)


def _open_live() -> KmsgReader:
    try:
        return KmsgReader.open(Path("/dev/kmsg"), to_time_ns)
    except SourceUnavailable as error:
        pytest.skip(error.facts)


@pytest.mark.kernel
def test_the_live_log_is_read_from_its_start_without_a_gap() -> None:
    reader = _open_live()
    lines = []
    while batch := reader.read_lines(500):
        lines += batch
    sequences = [line.sequence for line in lines]
    assert sequences == sorted(sequences, key=lambda sequence: sequence or 0)
    assert any(line.by_kernel for line in lines)
    assert reader.take_gaps(0) == []
    reader.close()


@pytest.mark.kernel
@pytest.mark.root
def test_a_line_that_we_write_ourselves_is_not_by_the_kernel() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may write to /dev/kmsg")
    reader = _open_live()
    while reader.read_lines(500):
        pass
    words = f"necroscope test {os.getpid()}: a harmless line"
    # The kernel does not let user space claim facility 0: it becomes 1. Without its newline a
    # record stays hidden until the next.
    Path("/dev/kmsg").write_text(f"<6>{words}\n")
    mine = [line for line in reader.read_lines(500) if line.text == words]
    assert [(line.severity, line.facility, line.by_kernel) for line in mine] == [(6, 1, False)]
    reader.close()
