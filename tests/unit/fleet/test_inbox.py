"""Files of the inbox: whole, or known to be damaged."""

import pytest

from necroscope.errors import CorruptData
from necroscope.fleet.inbox import Receipt, inbox_path, origin_of, pack, unpack

RECEIPTS = [
    Receipt("eu-1", 5, None, b"first"),
    Receipt("us-1", 6, 4, b"", (-2_000_000_000, 3_000_000)),
    Receipt("us-1", 7, None, bytes(1000)),
]


def test_what_is_packed_is_unpacked_in_order() -> None:
    assert list(unpack(pack(RECEIPTS))) == RECEIPTS


def test_every_flipped_byte_is_noticed() -> None:
    data = pack(RECEIPTS[:2])
    for position in range(len(data)):
        damaged = data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]
        with pytest.raises(CorruptData):
            list(unpack(damaged))


def test_what_stands_before_the_damage_is_kept() -> None:
    found = unpack(pack(RECEIPTS)[:-1])
    assert [next(found), next(found)] == RECEIPTS[:2]
    with pytest.raises(CorruptData):
        next(found)


def test_the_name_tells_when_and_by_whom() -> None:
    assert origin_of(inbox_path(5, "abc")) == (5, "abc")
    assert origin_of("inbox/readme.txt") is None
    assert origin_of("inbox/x-abc.batches") is None
