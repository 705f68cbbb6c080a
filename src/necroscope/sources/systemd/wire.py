"""D-Bus messages as bytes (D-Bus specification, "Marshaling" and "Message Format"): the calls we make, any answer there is.

Written here because the recorder imports nothing beyond the standard library, and two calls of systemd's need no more than this.
Messages come from a daemon, through a bus that anybody may write to: every length is checked against what is there.
"""

import struct
from typing import Any, Final, NamedTuple

CALL: Final = 1
RETURN: Final = 2
ERROR: Final = 3
MESSAGE_LIMIT_BYTES: Final = 32 << 20
# Header fields by number.
_PATH, _INTERFACE, _MEMBER, _ERROR_NAME, _REPLY_SERIAL, _DESTINATION, _SIGNATURE = 1, 2, 3, 4, 5, 6, 8
_NO_AUTO_START: Final = 2
_NUMBERS: Final = {"y": "B", "n": "h", "q": "H", "i": "i", "u": "I", "x": "q", "t": "Q", "d": "d", "h": "I"}
_ALIGNMENT: Final = {"g": 1, "v": 1, "b": 4, "s": 4, "o": 4, "a": 4, "(": 8, "{": 8} | {
    code: struct.calcsize(letter) for code, letter in _NUMBERS.items()
}
_DEEPEST: Final = 32

Argument = str | list[str]


class Malformed(Exception):  # noqa: N818
    """Bytes that are no message."""


class Message(NamedTuple):
    """An answer, error or signal; `body` has one value for each type of its signature."""

    kind: int
    reply_serial: int
    error_name: str
    body: tuple[Any, ...]


def pack_call(
    serial: int, path: str, interface: str, member: str, destination: str = "", arguments: tuple[Argument, ...] = ()
) -> bytes:
    """A method call whose arguments are texts and lists of texts; they are all that we need."""
    fields = [(_PATH, "o", path), (_INTERFACE, "s", interface), (_MEMBER, "s", member)]
    if destination:
        fields.append((_DESTINATION, "s", destination))
    body = b""
    for argument in arguments:
        body = _padded(body, 4) + (_text(argument) if isinstance(argument, str) else _texts(argument))
    head = b""
    for code, kind, value in fields:
        head = _padded(head, 8) + bytes([code, 1]) + kind.encode() + b"\0" + _text(value)
    if arguments:
        signature = b"".join(b"s" if isinstance(argument, str) else b"as" for argument in arguments)
        head = _padded(head, 8) + bytes([_SIGNATURE, 1]) + b"g\0" + bytes([len(signature)]) + signature + b"\0"
    start = struct.pack("<cBBBIII", b"l", CALL, _NO_AUTO_START, 1, len(body), serial, len(head))
    return _padded(start + head, 8) + body


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<I", len(raw)) + raw + b"\0"


def _texts(values: list[str]) -> bytes:
    content = b""
    for value in values:
        content = _padded(content, 4) + _text(value)
    return struct.pack("<I", len(content)) + content


def _padded(data: bytes, alignment: int) -> bytes:
    return data + b"\0" * (-len(data) % alignment)


def message_bytes(data: bytes | bytearray) -> int | None:
    """How long the message is that begins here; None if that cannot be told yet."""
    if len(data) < 16:
        return None
    order = _order(data[0])
    body, _serial, head = struct.unpack_from(order + "III", data, 4)
    length = 16 + head + (-head % 8) + body
    if length > MESSAGE_LIMIT_BYTES:
        raise Malformed(f"message of {length} bytes")
    return int(length)


def parse_message(data: bytes) -> Message:
    """One whole message."""
    order = _order(data[0])
    try:
        (fields,) = _Reader(data, order, 12).values("a(yv)")
        head_bytes = struct.unpack_from(order + "I", data, 12)[0]
        found = dict(fields)
        body = _Reader(data, order, 16 + head_bytes + (-head_bytes % 8)).values(str(found.get(_SIGNATURE, "")))
        return Message(data[1], int(found.get(_REPLY_SERIAL, 0)), str(found.get(_ERROR_NAME, "")), tuple(body))
    except (struct.error, LookupError, ValueError, TypeError) as error:
        raise Malformed(repr(error)) from None


def _order(mark: int) -> str:
    if mark not in b"lB":
        raise Malformed("no byte order")
    return "<" if mark == ord("l") else ">"


class _Reader:
    """Walks a signature and the bytes side by side."""

    def __init__(self, data: bytes, order: str, position: int) -> None:
        self._data = data
        self._order = order
        self._position = position
        self._depth = 0

    def values(self, signature: str) -> list[Any]:
        found = []
        at = 0
        while at < len(signature):
            end = _type_end(signature, at)
            found.append(self._value(signature[at:end]))
            at = end
        return found

    def _value(self, kind: str) -> Any:
        code = kind[0]
        self._position += -self._position % _ALIGNMENT[code]
        if code in "so":
            return self._string(self._number("I"))
        if code == "b":
            return self._number("I") != 0
        if code in _NUMBERS:
            return self._number(_NUMBERS[code])
        if code == "g":
            return self._string(self._number("B"))
        return self._nested(code, kind)

    def _nested(self, code: str, kind: str) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("nested too deep")
        try:
            if code == "a":
                return self._array(kind[1:])
            if code == "v":
                (value,) = self.values(self._string(self._number("B")))
                return value
            return tuple(self.values(kind[1:-1]))
        finally:
            self._depth -= 1

    def _array(self, kind: str) -> Any:
        length = int(self._number("I"))
        self._position += -self._position % _ALIGNMENT[kind[0]]
        end = self._position + length
        if end > len(self._data):
            raise ValueError("array beyond the message")
        if kind == "y":
            content, self._position = self._data[self._position : end], end
            return content
        items = []
        while self._position < end:
            before = self._position
            items.append(self._value(kind))
            if self._position == before:
                raise ValueError("an item without bytes")
        return items

    def _number(self, letter: str) -> Any:
        (value,) = struct.unpack_from(self._order + letter, self._data, self._position)
        self._position += struct.calcsize(self._order + letter)
        return value

    def _string(self, length: int) -> str:
        start, self._position = self._position, self._position + length + 1
        if self._position > len(self._data):
            raise ValueError("text beyond the message")
        return self._data[start : start + length].decode("utf-8", "backslashreplace")


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
