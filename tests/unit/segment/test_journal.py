"""A flush is whole or did not happen, whatever the disk says."""

import errno
import os

import pytest
from tests.decoded_block import decode_block

from necroscope.model.tables import TABLES
from necroscope.segment import journal
from necroscope.segment.block import Block
from necroscope.segment.journal import JournalWriteError, JournalWriter, SegmentHeader
from necroscope.segment.journal_reader import JournalReader, read_blocks

HEADER = SegmentHeader("name", "node", "boot", 5, 2)


@pytest.fixture
def writer(tmp_path):
    writer = JournalWriter(tmp_path / "x.live", HEADER)
    yield writer
    os.close(writer._descriptor)


def contents(writer: JournalWriter) -> list[tuple[str, list]]:
    frames = [item for item in read_blocks(writer.path) if isinstance(item, Block)]
    return [
        (f.header.name, decode_block(TABLES[f.header.name], f))
        for f in frames
        if f.header.name in TABLES
    ]


def core(time_ns: int) -> tuple:
    return (time_ns, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)


def test_journal_is_private_and_opens_with_its_header(writer):
    assert os.stat(writer.path).st_mode & 0o777 == 0o600
    reader = JournalReader(writer.path.parent, 0)
    assert list(reader.advance()) == []
    assert reader.header == HEADER


def test_rows_are_there_after_a_flush_and_not_before(writer):
    writer.append("cores", [core(1)])
    writer.append("cores", [core(2)])
    assert contents(writer) == []
    assert writer.flush() > 0
    assert contents(writer) == [("cores", [core(1), core(2)])]
    assert writer.flush() == 0
    assert writer.size_bytes == writer.path.stat().st_size


def test_a_flush_is_one_write_and_one_fdatasync(writer, monkeypatch):
    calls = []
    pwrite, fdatasync = os.pwrite, os.fdatasync
    monkeypatch.setattr(os, "pwrite", lambda *args: (calls.append("write"), pwrite(*args))[1])
    monkeypatch.setattr(os, "fdatasync", lambda *args: (calls.append("sync"), fdatasync(*args))[1])
    writer.append("cores", [core(1)])
    writer.append("stacks", [(0, -1, 0)])
    writer.flush()
    assert calls == ["write", "sync"]


def test_stacks_come_before_the_samples_that_refer_to_them(writer):
    writer.append("samples", [(1, 0, 1, 1, "c", None, 0, 1)])
    writer.append("stacks", [(0, -1, 0)])
    writer.append("frames", [(0, "f", "[kernel]", "kernel", None, None)])
    writer.flush()
    assert [name for name, _ in contents(writer)] == ["frames", "stacks", "samples"]


def test_many_rows_become_several_frames_in_order(writer, monkeypatch):
    monkeypatch.setattr(journal, "BLOCK_ROWS", 10)
    rows = [core(i) for i in range(25)]
    writer.append("cores", rows)
    assert writer._pending_rows == 0, (
        "many rows are encoded before the flush, so that memory stays bounded"
    )
    writer.flush()
    assert [len(rows) for _, rows in contents(writer)] == [10, 10, 5]
    assert [row for _, frame in contents(writer) for row in frame] == rows


def test_idle_samples_are_kept_with_the_journal(writer):
    for count in (3, 7):
        writer.idle_samples = count
        writer.flush()
    reader = JournalReader(writer.path.parent, 0)
    list(reader.advance())
    assert reader.idle_samples == 7


def failing(call: str, error_number: int, monkeypatch) -> None:
    """Write half of the bytes, then fail; or fail to sync what was written."""
    pwrite = os.pwrite
    calls = []

    def half_a_write(descriptor: int, data: memoryview, offset: int) -> int:
        calls.append(offset)
        if len(calls) > 1:
            raise OSError(error_number, os.strerror(error_number))
        return pwrite(descriptor, data[: len(data) // 2], offset)

    def no_sync(_: int) -> None:
        raise OSError(error_number, os.strerror(error_number))

    monkeypatch.setattr(os, call, half_a_write if call == "pwrite" else no_sync)


@pytest.mark.parametrize("error_number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
def test_failed_flush_leaves_no_half_frame_and_can_be_tried_again(
    writer, monkeypatch, call, error_number
):
    writer.append("cores", [core(1)])
    writer.flush()
    before = writer.path.read_bytes()
    writer.append("cores", [core(2)])
    with monkeypatch.context() as patch:
        failing(call, error_number, patch)
        with pytest.raises(JournalWriteError) as caught:
            writer.flush()
    assert caught.value.error_number == error_number
    assert writer.path.read_bytes() == before
    writer.append("cores", [core(3)])
    writer.flush()
    assert [row for _, rows in contents(writer) for row in rows] == [core(1), core(2), core(3)]


def test_discarded_rows_are_counted_for_a_gap(writer, monkeypatch):
    writer.append("cores", [core(1)])
    with monkeypatch.context() as patch:
        failing("pwrite", errno.ENOSPC, patch)
        with pytest.raises(JournalWriteError):
            writer.flush()
    writer.append("stacks", [(0, -1, 0), (1, 0, 0)])
    assert writer.discard() == {"cores": 1, "stacks": 2}
    assert writer.discard() == {}
    writer.append("cores", [core(4)])
    writer.flush()
    assert contents(writer) == [("cores", [core(4)])]


def test_half_frame_that_could_not_be_cut_off_is_overwritten(writer, monkeypatch):
    writer.append("cores", [core(1)])
    with monkeypatch.context() as patch:
        failing("pwrite", errno.EIO, patch)
        patch.setattr(
            os, "ftruncate", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "I/O error"))
        )
        with pytest.raises(JournalWriteError):
            writer.flush()
    assert contents(writer) == []
    writer.flush()
    assert contents(writer) == [("cores", [core(1)])]


def test_two_writers_never_share_a_segment(writer):
    with pytest.raises(JournalWriteError) as caught:
        JournalWriter(writer.path.parent, HEADER)
    assert caught.value.error_number == errno.EEXIST
    assert writer.path.exists()


def test_disk_that_is_full_at_the_start_leaves_nothing(tmp_path, monkeypatch):
    failing("fdatasync", errno.ENOSPC, monkeypatch)
    with pytest.raises(JournalWriteError):
        JournalWriter(tmp_path / "y.live", HEADER)
    assert list(tmp_path.iterdir()) == []


def test_close_flushes(tmp_path):
    writer = JournalWriter(tmp_path / "y.live", HEADER)
    writer.append("cores", [core(1)])
    writer.close()
    assert contents(writer) == [("cores", [core(1)])]


def test_a_file_is_let_go_of_once_though_the_last_flush_failed(tmp_path, monkeypatch):
    """Its number may be another file's by then."""
    writer = JournalWriter(tmp_path / "y.live", HEADER)
    writer.append("cores", [core(1)])
    with monkeypatch.context() as patched:
        failing("pwrite", errno.ENOSPC, patched)
        with pytest.raises(JournalWriteError):
            writer.close()
    with (tmp_path / "other").open("w") as other:
        writer.abandon()
        other.write("still open")
    assert (tmp_path / "other").read_text() == "still open"


def test_the_end_says_from_when_until_when_and_on_how_many_cores(tmp_path):
    writer = JournalWriter(tmp_path / "y.live", HEADER, durable=False)
    writer.append("cores", [core(50)])
    writer.idle_samples = 3
    writer.end(20, 90, 8)
    writer.close()
    reader = JournalReader(tmp_path / "y.live", 0)
    list(reader.advance())
    assert (reader.header, reader.last_ns) == (HEADER._replace(from_ns=20, cpus=8), 90)
    assert reader.idle_samples == 3
