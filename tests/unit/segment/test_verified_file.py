"""Only bytes whose checksum is right are given out, and only what is touched is read."""

import io
import zlib

import pytest

from necroscope.errors import CorruptData
from necroscope.segment.manifest import TableEntry
from necroscope.segment.verified_file import VerifiedFile

DATA = bytes(range(100))
CUTS = [(0, 4), (4, 56), (60, 30), (90, 10)]


def entry(size: int = 100, cuts: list = CUTS) -> TableEntry:
    return TableEntry(1, size, 0, 0, [(start, length, zlib.crc32(DATA[start : start + length])) for start, length in cuts])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_bytes(DATA)
    return path


def test_reads_as_a_file_does(path):
    file, plain = VerifiedFile(path, entry()), io.BytesIO(DATA)
    for offset, whence, count in [(0, 0, 5), (-10, 2, 10), (50, 0, 45), (3, 1, 100), (0, 0, -1), (200, 0, 5), (7, 0, 0)]:
        assert file.seek(offset, whence) == plain.seek(offset, whence)
        assert file.read(count) == plain.read(count)
        assert file.tell() == plain.tell()
    assert file.readable()
    assert file.seekable()
    file.close()
    assert file.closed


def test_each_stretch_is_read_once_and_only_when_touched(path):
    file = VerifiedFile(path, entry())
    assert file.bytes_read == 0
    assert file.footer() == DATA[90:]
    assert file.bytes_read == 10
    for _ in range(3):
        file.seek(61)
        assert file.read(3) == DATA[61:64]
    assert file.bytes_read == 40
    file.close()


def test_damage_is_noticed_in_the_stretch_that_has_it_and_nowhere_else(path):
    for position in range(100):
        path.write_bytes(DATA[:position] + bytes([DATA[position] ^ 0x10]) + DATA[position + 1 :])
        file = VerifiedFile(path, entry())
        for start, length in CUTS:
            file.seek(start)
            if start <= position < start + length:
                with pytest.raises(CorruptData, match="checksum"):
                    file.read(1)
            else:
                assert file.read(length) == DATA[start : start + length]
        file.close()


@pytest.mark.parametrize("content", [DATA[:-1], DATA + b"x", b""])
def test_file_of_another_size_is_corrupt(path, content):
    path.write_bytes(content)
    with pytest.raises(CorruptData, match="size"):
        VerifiedFile(path, entry())


def test_missing_file_is_corrupt(tmp_path):
    with pytest.raises(CorruptData, match="No such file"):
        VerifiedFile(tmp_path / "x", entry())


@pytest.mark.parametrize("cuts", [[], [(0, 50)], [(0, 50), (60, 40)], [(0, 60), (50, 50)], [(0, 0), (0, 100)]])
def test_ranges_that_leave_a_byte_unchecked_are_refused(path, cuts):
    with pytest.raises(CorruptData, match="cover"):
        VerifiedFile(path, entry(cuts=cuts))
