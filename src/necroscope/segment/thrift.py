"""Thrift's compact protocol, as far as Parquet's metadata needs it: a structure of anyone's making
becomes numbers, bytes, lists and dictionaries by field number, in time and memory that its bytes
bound.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from collections.abc import Callable
from typing import Any, Final

from necroscope.errors import CorruptData

Bytes = bytes | memoryview
Structure = dict[int, Any]

# Parquet's deepest is a unit of time in a logical type: five.
_DEEPEST: Final = 8
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _BINARY, _LIST, _STRUCT = 1, 2, 3, 4, 5, 6, 8, 9, 12
_LONG_LIST: Final = 15
_LAST_BYTE: Final = 127
_VARINT_BITS: Final = 63


def read_structure(data: Bytes, at: int) -> tuple[Structure, int]:
    """The structure at this place, and the place behind it; CorruptData if there is none.

    A field that comes twice is refused: another reader could take the other one.
    """
    try:
        return _structure(data, at, 0)
    except IndexError:
        raise CorruptData("a structure of Parquet ends before its end") from None


def _structure(data: Bytes, at: int, depth: int) -> tuple[Structure, int]:
    if depth > _DEEPEST:
        raise CorruptData(f"structures of Parquet are nested more than {_DEEPEST} deep")
    fields: Structure = {}
    number = 0
    # Written out, in the order of how often they are met: the footer of a table has a thousand
    # fields, and this loop is what it costs to open one.
    while head := data[at]:
        at += 1
        if head > _LONG_LIST:
            number += head >> 4
        else:
            number, at = _number(data, at, depth)
        if number in fields:
            raise CorruptData(f"a structure of Parquet has field {number} twice")
        kind = head & 15
        if _I16 <= kind <= _I64:
            value = data[at]
            at += 1
            if value > _LAST_BYTE:
                value, at = _varint(data, at - 1)
            fields[number] = value >> 1 ^ -(value & 1)
        elif kind in (_TRUE, _FALSE):
            fields[number] = kind == _TRUE
        elif kind == _STRUCT:
            fields[number], at = _structure(data, at, depth + 1)
        else:
            fields[number], at = _reader(kind)(data, at, depth + 1)
    return fields, at + 1


def _varint(data: Bytes, at: int) -> tuple[int, int]:
    value = data[at]
    if value <= _LAST_BYTE:
        return value, at + 1
    value &= _LAST_BYTE
    for shift in range(7, _VARINT_BITS + 1, 7):
        at += 1
        part = data[at]
        value |= (part & _LAST_BYTE) << shift
        if part <= _LAST_BYTE:
            return value, at + 1
    raise CorruptData("a number of Parquet has more than 64 bits")


def _number(data: Bytes, at: int, _depth: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def _binary(data: Bytes, at: int, _depth: int) -> tuple[bytes, int]:
    size, at = _varint(data, at)
    if size > len(data) - at:
        raise CorruptData("a text of Parquet is longer than its file")
    return bytes(data[at : at + size]), at + size


def _byte(data: Bytes, at: int, _depth: int) -> tuple[int, int]:
    return data[at], at + 1


def _list(data: Bytes, at: int, depth: int) -> tuple[list[Any], int]:
    head = data[at]
    at += 1
    count = head >> 4
    if count == _LONG_LIST:
        count, at = _varint(data, at)
    # A member takes a byte at least.
    if count > len(data) - at:
        raise CorruptData("a list of Parquet is longer than its file")
    read = _reader(head & 15)
    members = []
    for _ in range(count):
        member, at = read(data, at, depth)
        members.append(member)
    return members, at


def _reader(kind: int) -> Callable[[Bytes, int, int], tuple[Any, int]]:
    try:
        return _READERS[kind]
    except KeyError:
        raise CorruptData(f"Parquet has no values of Thrift's type {kind}") from None


_READERS: Final[dict[int, Callable[[Bytes, int, int], tuple[Any, int]]]] = {
    **dict.fromkeys((_TRUE, _FALSE, _BYTE), _byte),
    **dict.fromkeys((_I16, _I32, _I64), _number),
    _BINARY: _binary,
    _LIST: _list,
    _STRUCT: _structure,
}
