"""D-Bus messages as bytes (D-Bus specification, "Marshaling" and "Message Format"): the calls we
make, any answer there is.

Written here because the recorder imports nothing beyond the standard library, and two calls of
systemd's need no more than this. Messages come from a daemon, through a bus that any process may
write to: every length is checked against what is there. A round has hundreds of answers, most of
them as the last time: so a message's body is read only when a caller wants it.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

CALL: Final = 1
RETURN: Final = 2
ERROR: Final = 3
MESSAGE_LIMIT_BYTES: Final = 32 << 20
# Header fields by number.
_PATH, _INTERFACE, _MEMBER, _ERROR_NAME, _REPLY_SERIAL, _DESTINATION, _SIGNATURE = (
    1,
    2,
    3,
    4,
    5,
    6,
    8,
)
_NO_AUTO_START: Final = 2
_NUMBERS: Final = {
    "y": "B",
    "n": "h",
    "q": "H",
    "i": "i",
    "u": "I",
    "x": "q",
    "t": "Q",
    "d": "d",
    "h": "I",
}
_ALIGNMENT: Final = {"g": 1, "v": 1, "b": 4, "s": 4, "o": 4, "a": 4, "(": 8, "{": 8} | {
    code: struct.calcsize(letter) for code, letter in _NUMBERS.items()
}

Argument = str | tuple[str, ...] | bool


class MalformedMessage(Exception):  # noqa: N818
    """Bytes that are not a message."""


class Message(NamedTuple):
    """An answer, error or signal, its body still as bytes."""

    kind: int
    reply_serial: int
    error_name: str
    signature: str
    order: str
    raw: bytes

    def body(self) -> tuple[Any, ...]:
        """One value for each type of the signature."""
        try:
            return tuple(_values(self.signature, self.order)(self.raw, 0)[0])
        except _DAMAGES as error:
            raise MalformedMessage(repr(error)) from None


def pack_call(
    serial: int,
    path: str,
    interface: str,
    member: str,
    destination: str = "",
    arguments: tuple[Argument, ...] = (),
) -> bytes:
    """A method call whose arguments are texts, lists of texts and truths: all that we need."""
    call = _pack_call(path, interface, member, destination, arguments)
    return call[:8] + struct.pack("<I", serial) + call[12:]


# Each round asks the same.
@lru_cache(maxsize=1024)
def _pack_call(
    path: str, interface: str, member: str, destination: str, arguments: tuple[Argument, ...]
) -> bytes:
    fields = [(_PATH, "o", path), (_INTERFACE, "s", interface), (_MEMBER, "s", member)]
    if destination:
        fields.append((_DESTINATION, "s", destination))
    body = b""
    for argument in arguments:
        body = _pad(body, 4) + _pack(argument)
    head = b""
    for code, kind, value in fields:
        head = _pad(head, 8) + bytes([code, 1]) + kind.encode() + b"\0" + _text(value)
    if arguments:
        signature = b"".join(_signature(argument) for argument in arguments)
        head = (
            _pad(head, 8)
            + bytes([_SIGNATURE, 1])
            + b"g\0"
            + bytes([len(signature)])
            + signature
            + b"\0"
        )
    start = struct.pack("<cBBBIII", b"l", CALL, _NO_AUTO_START, 1, len(body), 0, len(head))
    return _pad(start + head, 8) + body


def _pack(argument: Argument) -> bytes:
    if isinstance(argument, bool):
        return struct.pack("<I", argument)
    return _text(argument) if isinstance(argument, str) else _texts(argument)


def _signature(argument: Argument) -> bytes:
    if isinstance(argument, bool):
        return b"b"
    return b"s" if isinstance(argument, str) else b"as"


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<I", len(raw)) + raw + b"\0"


def _texts(values: tuple[str, ...]) -> bytes:
    content = b""
    for value in values:
        content = _pad(content, 4) + _text(value)
    return struct.pack("<I", len(content)) + content


def _pad(data: bytes, alignment: int) -> bytes:
    return data + b"\0" * (-len(data) % alignment)


def message_bytes(data: bytes | bytearray) -> int | None:
    """How long the message is that begins here; None if that is not known yet."""
    if len(data) < 16:
        return None
    order = _order(data[0])
    body, _serial, head = struct.unpack_from(order + "III", data, 4)
    length = 16 + head + (-head % 8) + body
    if length > MESSAGE_LIMIT_BYTES:
        raise MalformedMessage(f"message of {length} bytes")
    return int(length)


def parse_message(data: bytes) -> Message:
    """One whole message."""
    order = _order(data[0])
    try:
        fields, _end = _array("(yv)", order)(data, 12)
        found = dict(fields)
        (head_bytes,) = struct.unpack_from(order + "I", data, 12)
        # The body begins at a multiple of 8, so that what is aligned in the message is aligned in
        # it.
        body = data[16 + head_bytes + (-head_bytes % 8) :]
        error_name, signature = str(found.get(_ERROR_NAME, "")), str(found.get(_SIGNATURE, ""))
        return Message(
            data[1], int(found.get(_REPLY_SERIAL, 0)), error_name, signature, order, body
        )
    except _DAMAGES as error:
        raise MalformedMessage(repr(error)) from None


def _order(mark: int) -> str:
    if mark not in b"lB":
        raise MalformedMessage("no byte order")
    return "<" if mark == ord("l") else ">"


# Reads a value at a place of the bytes; returns it and the place behind it.
_Reader = Callable[[bytes, int], tuple[Any, int]]
_DAMAGES: Final = (struct.error, LookupError, ValueError, TypeError, RecursionError)


@lru_cache(maxsize=256)
def _values(signature: str, order: str) -> _Reader:
    """Several values one after the other, as a list."""
    readers = []
    at = 0
    while at < len(signature):
        end = _type_end(signature, at)
        readers.append(_value(signature[at:end], order))
        at = end

    def read(data: bytes, place: int) -> tuple[list[Any], int]:
        values = []
        for reader in readers:
            value, place = reader(data, place)
            values.append(value)
        return values, place

    return read


@lru_cache(maxsize=256)
def _value(kind: str, order: str) -> _Reader:
    """The reader of one complete type."""
    code = kind[0]
    if code in "so":
        return _text_reader(order + "I", 4)
    if code == "g":
        return _text_reader("B", 1)
    if code == "a":
        return _array(kind[1:], order)
    if code == "v":
        return _variant(order)
    if code in "({":
        return _struct(kind[1:-1], order)
    return _number(order + ("I" if code == "b" else _NUMBERS[code]), is_bool=code == "b")


def _number(letters: str, *, is_bool: bool) -> _Reader:
    unpack, size = struct.Struct(letters).unpack_from, struct.calcsize(letters)

    def read(data: bytes, place: int) -> tuple[Any, int]:
        place += -place % size
        (value,) = unpack(data, place)
        return (value != 0 if is_bool else value), place + size

    return read


def _text_reader(letters: str, size: int) -> _Reader:
    unpack = struct.Struct(letters).unpack_from

    def read(data: bytes, place: int) -> tuple[str, int]:
        place += -place % size
        (length,) = unpack(data, place)
        start = place + size
        end = start + length
        if end >= len(data):
            raise ValueError("text beyond the message")
        return data[start:end].decode("utf-8", "backslashreplace"), end + 1

    return read


def _struct(inner: str, order: str) -> _Reader:
    read_values = _values(inner, order)

    def read(data: bytes, place: int) -> tuple[tuple[Any, ...], int]:
        values, place = read_values(data, place + -place % 8)
        return tuple(values), place

    return read


def _variant(order: str) -> _Reader:
    read_signature = _text_reader("B", 1)

    def read(data: bytes, place: int) -> tuple[Any, int]:
        signature, place = read_signature(data, place)
        values, place = _values(signature, order)(data, place)
        (value,) = values
        return value, place

    return read


def _array(kind: str, order: str) -> _Reader:
    unpack, alignment = struct.Struct(order + "I").unpack_from, _ALIGNMENT[kind[0]]
    read_item = _value(kind, order)

    def read(data: bytes, place: int) -> tuple[Any, int]:
        place += -place % 4
        (length,) = unpack(data, place)
        place += 4
        place += -place % alignment
        end = place + length
        if end > len(data):
            raise ValueError("array beyond the message")
        if kind == "y":
            return data[place:end], end
        items = []
        while place < end:
            item, behind = read_item(data, place)
            if behind == place:
                raise ValueError("an item without bytes")
            items.append(item)
            place = behind
        return items, place

    return read


def _type_end(signature: str, at: int) -> int:
    """Where the complete type that begins at `at` ends."""
    while signature[at] == "a":
        at += 1
    if signature[at] not in "({":
        return at + 1
    depth = 0
    for end in range(at, len(signature)):
        depth += (signature[end] in "({") - (signature[end] in ")}")
        if depth == 0:
            return end + 1
    raise ValueError("a bracket that is not closed")
