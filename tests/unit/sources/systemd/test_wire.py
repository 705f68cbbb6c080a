"""D-Bus bytes: ours go out as the specification says, systemd's come in, and hostile ones never
hurt.
"""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sources.systemd.conftest import CapturedBus

from necroscope.sources.systemd import wire
from necroscope.sources.systemd.wire import (
    MalformedMessage,
    Message,
    message_bytes,
    pack_call,
    parse_message,
)


def reply(
    body: bytes,
    signature: bytes,
    order: str = "<",
    kind: int = wire.RETURN,
    serial: int = 7,
    error: str = "",
) -> bytes:
    """An answer to call `serial`, as a bus would send it."""
    mark = b"l" if order == "<" else b"B"
    fields = bytes([5, 1]) + b"u\0" + struct.pack(order + "I", serial)
    if error:
        fields += (
            bytes([4, 1]) + b"s\0" + struct.pack(order + "I", len(error)) + error.encode() + b"\0"
        )
        fields += b"\0" * (-len(fields) % 8)
    fields += bytes([8, 1]) + b"g\0" + bytes([len(signature)]) + signature + b"\0"
    head = (
        mark + bytes([kind, 0, 1]) + struct.pack(order + "III", len(body), 1, len(fields)) + fields
    )
    return head + b"\0" * (-len(head) % 8) + body


def test_a_call_is_laid_out_as_the_specification_says() -> None:
    call = pack_call(1, "/a", "i.f", "M", "d.e", ("x", ("yy", "z")))
    assert message_bytes(call) == len(call)
    assert struct.unpack_from("<cBBBII", call) == (b"l", 1, 2, 1, 26, 1)
    assert call.endswith(
        b"\x01\0\0\0x\0\0\0" + b"\x0e\0\0\0" + b"\x02\0\0\0yy\0\0" + b"\x01\0\0\0z\0"
    )
    assert b"\x08\x01g\0\x03sas\0" in call


def test_truths_are_packed_as_numbers_of_four_bytes() -> None:
    call = pack_call(1, "/o", "i.f", "Mask", "", (("a.service",), True, False))
    assert b"asbb\0" in call
    assert call.endswith(b"a.service\0" + b"\0\0" + b"\1\0\0\0" + b"\0\0\0\0")


def test_every_type_is_read_in_both_byte_orders() -> None:
    for order in "<>":
        body = struct.pack(order + "BxxxIqQ", 3, 1, -5, 1 << 63) + struct.pack(order + "d", 0.5)
        body += (
            struct.pack(order + "I", 2)
            + b"ab\0"
            + b"\x01u\0"
            + b"\0\0"
            + struct.pack(order + "I", 9)
        )
        message = parse_message(reply(body, b"ybxtdsv", order))
        assert message == Message(wire.RETURN, 7, "", "ybxtdsv", order, body)
        assert message.body() == (3, True, -5, 1 << 63, 0.5, "ab", 9)


def test_arrays_structs_and_bytes_are_read() -> None:
    items = struct.pack("<I", 1) + b"a\0" + b"\0\0" + struct.pack("<I", 5)
    body = struct.pack("<I", len(items)) + b"\0\0\0\0" + items + struct.pack("<I", 3) + b"xyz"
    assert parse_message(reply(body, b"a(su)ay")).body() == ([("a", 5)], b"xyz")


def test_systemds_own_bytes_are_read(captured: CapturedBus) -> None:
    for answers in captured.rounds:
        messages = [parse_message(bytes.fromhex(raw)) for raw in answers.values()]
        assert all(message_bytes(bytes.fromhex(raw)) == len(raw) // 2 for raw in answers.values())
        assert {message.kind for message in messages} == {wire.RETURN}
        assert all(len(message.body()) == 1 for message in messages)


@pytest.mark.parametrize(
    "raw",
    [
        b"x" * 16,
        reply(struct.pack("<I", 1 << 30), b"ay"),
        reply(struct.pack("<I", 1 << 30), b"s"),
        reply(b"", b"s"),
        reply(b"\x01v\0" * 40, b"v"),
        reply(b"\0" * 16, b"(s"),
        reply(b"\0" * 16, b"?"),
        reply(b"\x08\0\0\0\0\0\0\0" + b"\0" * 8, b"a()"),
    ],
    ids=[
        "no order",
        "array beyond",
        "text beyond",
        "no body",
        "too deep",
        "open bracket",
        "unknown type",
        "empty items",
    ],
)
def test_malformed_messages_are_refused(raw: bytes) -> None:
    with pytest.raises(MalformedMessage):
        parse_message(raw).body()


def test_a_message_of_absurd_length_is_refused_before_it_is_read() -> None:
    with pytest.raises(MalformedMessage, match="message of"):
        message_bytes(struct.pack("<cBBBIII", b"l", 2, 0, 1, 1 << 31, 1, 0))
    assert message_bytes(b"l\x02\0\x01") is None


@given(st.binary(max_size=200), st.binary(max_size=20))
def test_no_bytes_make_it_fail_otherwise(body: bytes, signature: bytes) -> None:
    with contextlib.suppress(MalformedMessage):
        parse_message(reply(body, signature)).body()
