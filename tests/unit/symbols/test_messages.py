import pytest
from hypothesis import given
from hypothesis import strategies as st

from necroscope.symbols.image import NAME_LIMIT_BYTES
from necroscope.symbols.messages import (
    BLOCK_BITS,
    NO_FUNCTION,
    FrameError,
    FrameReader,
    pack,
    pack_block,
    unpack_block,
)
from necroscope.symbols.symbol_names import MANGLED_LIMIT

BLOCK_BYTES = 1 << BLOCK_BITS


def test_messages_come_out_as_they_went_in_however_they_are_cut() -> None:
    messages = [(1, 2, ["a", None, "\udcff", b"\xff\0"]), (2, 3, []), (0, None)]
    stream = b"".join(pack(message) for message in messages)
    reader = FrameReader()
    assert [
        message for at in range(0, len(stream), 3) for message in reader.feed(stream[at : at + 3])
    ] == messages


def test_frame_without_measure_is_refused() -> None:
    with pytest.raises(FrameError):
        FrameReader().feed(b"\xff\xff\xff\xff")


@given(
    st.dictionaries(st.integers(1, BLOCK_BYTES - 1), st.binary(max_size=20), max_size=20),
    st.binary(max_size=20),
)
def test_a_block_comes_out_as_it_went_in(functions: dict[int, bytes], first: bytes) -> None:
    block = [(0, first), *sorted(functions.items())]
    assert unpack_block(pack_block(block)) == block


def test_a_block_is_what_the_native_core_reads() -> None:
    packed = pack_block([(0, b""), (16, b"one"), (BLOCK_BYTES - 1, b"four")])
    assert packed.starts == b"\0\0\x10\0\xff\x3f"
    assert packed.name_ends == b"\0\0\0\0\x03\0\0\0\x07\0\0\0"
    assert packed.names == b"onefour"
    assert unpack_block(NO_FUNCTION) == [(0, b"")]


def test_long_names_are_cut_and_the_next_begins_behind_the_cut() -> None:
    whole, longer = b"w" * NAME_LIMIT_BYTES, b"l" * (NAME_LIMIT_BYTES + 1)
    found = unpack_block(pack_block([(0, longer), (8, whole), (16, b"next")]))
    assert found == [(0, longer[:-1]), (8, whole), (16, b"next")]


def test_a_name_that_was_cut_is_too_long_to_be_demangled() -> None:
    """What is left of `_Z1fiii...` would be the name of another function."""
    ((_, cut),) = unpack_block(pack_block([(0, b"_Z1f" + b"i" * 2000)]))
    assert len(cut) > MANGLED_LIMIT
