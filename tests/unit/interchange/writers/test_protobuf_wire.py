"""The wire format against the examples of protobuf's own documentation."""

import numpy as np

from necroscope.interchange.writers.pprof import (
    bytes_field,
    number_field,
    packed_field,
    varint,
    varints,
)


def test_varints_are_as_documented() -> None:
    assert varint(1) == b"\x01"
    assert varint(150) == b"\x96\x01"
    assert varint(-2) == b"\xfe" + b"\xff" * 8 + b"\x01"


def test_fields_are_as_documented() -> None:
    assert number_field(1, 150) == b"\x08\x96\x01"
    assert bytes_field(2, b"testing") == b"\x12\x07testing"
    assert packed_field(6, (3, 270, 86942)) == bytes.fromhex("3206038e029ea705")


def test_zero_is_not_written() -> None:
    assert number_field(1, 0) == b""


def test_many_varints_are_each_as_one() -> None:
    numbers = [
        0,
        1,
        127,
        128,
        150,
        2**14 - 1,
        2**14,
        2**56,
        1_790_000_000_000_000_000,
        2**63 - 1,
        -1,
        -2,
    ]
    assert varints(np.array(numbers)) == [varint(number) for number in numbers]
