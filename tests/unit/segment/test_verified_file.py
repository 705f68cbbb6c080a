"""Only bytes whose checksum is right are given out, and only what is touched is read."""

import zlib

import pytest

from necroscope.errors import CorruptData
from necroscope.segment.manifest import TableEntry
from necroscope.segment.sealed_reader import VerifiedFile

DATA = bytes(range(100))
CUTS = [(0, 4), (4, 56), (60, 30), (90, 10)]


def entry(size: int = 100, cuts: list = CUTS) -> TableEntry:
    return TableEntry(
        1,
        size,
        0,
        0,
        [(start, length, zlib.crc32(DATA[start : start + length])) for start, length in cuts],
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_bytes(DATA)
    return path


def test_content_is_where_it_is_in_the_file_and_the_rest_is_zeros(path):
    file = VerifiedFile(path, entry())
    file.check_group(1)
    assert file.content.tobytes() == bytes(60) + DATA[60:90] + bytes(10)
    file.check_group(0)
    assert file.footer() == DATA[90:]
    assert file.content.tobytes() == bytes(4) + DATA[4:]
    file.close()


def test_each_stretch_is_read_once_and_only_when_touched(path):
    file = VerifiedFile(path, entry())
    assert file.bytes_read == 0
    assert file.footer() == DATA[90:]
    assert file.bytes_read == 10
    for _ in range(3):
        file.check_group(1)
    assert file.bytes_read == 40
    file.close()


def test_damage_is_noticed_in_the_stretch_that_has_it_and_nowhere_else(path):
    for position in range(100):
        path.write_bytes(DATA[:position] + bytes([DATA[position] ^ 0x10]) + DATA[position + 1 :])
        file = VerifiedFile(path, entry())
        for group, (start, length) in enumerate(CUTS[1:-1]):
            if start <= position < start + length:
                with pytest.raises(CorruptData, match="checksum"):
                    file.check_group(group)
            else:
                file.check_group(group)
        if position >= 90:
            with pytest.raises(CorruptData, match="checksum"):
                file.footer()
        good = [
            byte
            for group in CUTS[1:-1]
            if not group[0] <= position < sum(group)
            for byte in DATA[group[0] : sum(group)]
        ]
        assert [byte for byte in file.content.tobytes() if byte] == good, (
            "what is damaged is not given out"
        )
        file.close()


@pytest.mark.parametrize("group", [-1, 2, 100])
def test_a_row_group_that_the_manifest_does_not_know_is_corrupt(path, group):
    file = VerifiedFile(path, entry())
    with pytest.raises(CorruptData, match="no range"):
        file.check_group(group)
    file.close()


@pytest.mark.parametrize("content", [DATA[:-1], DATA + b"x", b""])
def test_file_of_another_size_is_corrupt(path, content):
    path.write_bytes(content)
    with pytest.raises(CorruptData, match="size"):
        VerifiedFile(path, entry())


def test_missing_file_is_corrupt(tmp_path):
    with pytest.raises(CorruptData, match="No such file"):
        VerifiedFile(tmp_path / "x", entry())


@pytest.mark.parametrize(
    "cuts", [[], [(0, 50)], [(0, 50), (60, 40)], [(0, 60), (50, 50)], [(0, 0), (0, 100)]]
)
def test_ranges_that_leave_a_byte_unchecked_are_refused(path, cuts):
    with pytest.raises(CorruptData, match="cover"):
        VerifiedFile(path, entry(cuts=cuts))
