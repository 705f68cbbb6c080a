"""A kernel file read again and again."""

import os
from pathlib import Path

import pytest

from necroscope.errors import SourceUnavailable
from necroscope.sources.kept_file import KeptFile, read_once


def test_each_read_starts_at_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\n")
    file = KeptFile(path)
    assert [file.read(), file.read()] == [b"one\n", b"one\n"]
    path.write_bytes(b"two\n")
    assert file.read() == b"two\n"
    file.close()


def test_a_file_longer_than_one_call_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 200_000)
    file = KeptFile(path)
    assert len(file.read()) == 200_000
    file.close()


def test_a_record_longer_than_one_call_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 200_000)
    file = KeptFile(path)
    assert [len(file.read_record()), len(file.read_record())] == [200_000, 200_000]
    file.close()


def test_a_record_that_fits_into_one_call_costs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"cpu 1\n")
    file = KeptFile(path)
    file.read_record()
    offsets, pread = [], os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        offsets.append(offset)
        return pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", counted)
    assert file.read_record() == b"cpu 1\n"
    assert offsets == [0]
    file.close()


@pytest.mark.kernel
def test_a_file_of_short_records_is_whole_without_a_call_that_finds_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = KeptFile(Path("/proc/vmstat"))
    names = [line.split()[0] for line in file.read().splitlines()]
    sizes, pread = [], os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        data = pread(descriptor, size, offset)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    assert [line.split()[0] for line in file.read(longest_record_bytes=128).splitlines()] == names
    # Unless the last call filled its page so far that another line may not have fitted.
    assert all(sizes[:-1])
    assert sizes[-1] or sizes[-2] > 4096 - 128
    file.close()


def test_a_descriptor_that_breaks_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\n")
    file = KeptFile(path)
    file.read()
    # As a process that is gone does: the descriptor is there, reading it fails.
    write_only = os.open(path, os.O_WRONLY)
    os.dup2(write_only, file._fd)
    os.close(write_only)
    assert file.read() == b"one\n"
    file.close()


def test_an_absent_file_is_reported_with_its_path_and_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable) as caught:
        KeptFile(tmp_path / "absent").read()
    assert str(tmp_path / "absent") in caught.value.facts
    assert "No such file" in caught.value.facts
    assert "--host-root" in caught.value.hint


def test_a_file_comes_back_after_it_was_absent(tmp_path: Path) -> None:
    file = KeptFile(tmp_path / "late")
    with pytest.raises(SourceUnavailable):
        file.read()
    (tmp_path / "late").write_bytes(b"here\n")
    assert file.read() == b"here\n"
    file.close()


def test_a_format_not_known_is_an_interface_not_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\x1b[31mnonsense")
    file = KeptFile(path)
    with pytest.raises(SourceUnavailable, match="not in a known format") as caught:
        file.parse(int)
    assert "\x1b" not in caught.value.facts
    file.close()


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\n")
    before = len(os.listdir("/proc/self/fd"))
    file = KeptFile(path)
    file.read()
    read_once(str(path))
    file.close()
    file.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_read_once_tells_absent_by_none(tmp_path: Path) -> None:
    assert read_once(str(tmp_path / "absent")) is None
    assert read_once(str(tmp_path)) is None
