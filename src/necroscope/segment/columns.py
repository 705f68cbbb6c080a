"""A column of values as Arrow-layout buffers and back, in pure Python, so that a reader with Arrow
wraps them without a loop.

Layout: arrow.apache.org/docs/format/Columnar.html, little endian. First comes the validity bitmap,
empty if nothing is null. Encoding never raises: what does not fit is clamped, what is not a value
of the type becomes null.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, count, pairwise, repeat
from operator import is_not
from typing import Any, Final

from necroscope.model.reading import Value
from necroscope.model.tables import Type

# Buffers of a column of each type, the validity bitmap included.
BUFFER_COUNT: Final = {
    Type.BOOL: 2,
    Type.INT16: 2,
    Type.INT32: 2,
    Type.INT64: 2,
    Type.UTF8: 3,
    Type.CATEGORY: 4,
    Type.INT32_LIST: 3,
}
# Texts of one column and block together; longer ones are cut, so that int32 offsets hold and a
# block stays readable.
TEXT_LIMIT: Final = 1 << 24
_TYPECODES: Final = {Type.INT16: "h", Type.INT32: "i", Type.INT64: "q"}
_BITS: Final = {Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}
_AS_DIGITS: Final = bytes([ord("0")]) + bytes([ord("1")]) * 255


def encode_column(kind: Type, values: Sequence[Value]) -> list[bytes]:
    """The buffers of one column; the fast path is C loops only and gives up at the first value that
    needs care.
    """
    try:
        return _encode(kind, values)
    except (TypeError, OverflowError, ValueError, AttributeError):
        return _encode_with_care(kind, values)


def decode_column(kind: Type, rows: int, buffers: Sequence[memoryview]) -> list[Value]:
    """The values of one column; ValueError, IndexError or TypeError if the buffers do not fit each
    other.
    """
    validity, *rest = buffers
    values = _decode(kind, rows, rest)
    if len(values) != rows:
        raise ValueError(f"{len(values)} values in a column of {rows} rows")
    if not validity:
        return values
    return [
        value if is_valid else None
        for value, is_valid in zip(values, _bits(validity, rows), strict=True)
    ]


def _encode(kind: Type, values: Sequence[Any]) -> list[bytes]:
    if kind in _TYPECODES:
        return [b"", array(_TYPECODES[kind], values).tobytes()]
    if kind is Type.CATEGORY:
        return _encode_category(values)
    if kind is Type.UTF8:
        return [b"", *_encode_texts(values)]
    if kind is Type.INT32_LIST:
        return [b"", _offsets(values), array("i", chain.from_iterable(values)).tobytes()]
    if None in values:
        raise TypeError("null among booleans")
    return [b"", _bitmap(values)]


def _encode_with_care(kind: Type, values: Sequence[Value]) -> list[bytes]:
    repaired = [_repair(kind, value) for value in values]
    missing: Value = (
        "" if kind in (Type.UTF8, Type.CATEGORY) else [] if kind is Type.INT32_LIST else 0
    )
    buffers = _encode(kind, [missing if value is None else value for value in repaired])
    return [_validity(repaired) if None in repaired else b"", *buffers[1:]]


def _encode_category(values: Sequence[Any]) -> list[bytes]:
    different = dict.fromkeys(values)
    validity = b""
    if None in different:
        del different[None]
        validity = _validity(values)
    index_of = dict(zip(different, count(), strict=False))
    if validity:
        index_of[None] = 0
    indices = array("i", map(index_of.__getitem__, values)).tobytes()
    # An index must point into the dictionary even where all values are null.
    return [validity, indices, *_encode_texts(list(different) or [""])]


def _encode_texts(values: Sequence[str]) -> tuple[bytes, bytes]:
    text = "".join(values)
    if len(text) > TEXT_LIMIT:
        values = [value[: TEXT_LIMIT // len(values)] for value in values]
        text = "".join(values)
    if text.isascii():
        return _offsets(values), text.encode("ascii")
    encoded = [value.encode("utf-8", "backslashreplace") for value in values]
    return _offsets(encoded), b"".join(encoded)


def _offsets(values: Iterable[Sequence[object]]) -> bytes:
    return array("i", accumulate(map(len, values), initial=0)).tobytes()


def _validity(values: Sequence[Value]) -> bytes:
    return _bitmap(map(is_not, values, repeat(None)))


def _bitmap(truths: Iterable[object]) -> bytes:
    """Least significant bit first: read backwards it is a binary number, which Python parses and
    writes in C.
    """
    flags = bytes(map(bool, truths))
    return int(flags.translate(_AS_DIGITS)[::-1] or b"0", 2).to_bytes(
        (len(flags) + 7) // 8, "little"
    )


def _bits(bitmap: memoryview, rows: int) -> list[bool]:
    if len(bitmap) * 8 < rows:
        raise ValueError("bitmap too short")
    return [bool(bitmap[i >> 3] >> (i & 7) & 1) for i in range(rows)]


def _repair(kind: Type, value: Value) -> Value:
    if value is None:
        return None
    if kind in (Type.UTF8, Type.CATEGORY):
        return value if isinstance(value, str) else str(value)
    if kind is Type.BOOL:
        return bool(value)
    if kind is Type.INT32_LIST:
        return (
            [_clamp(31, item) or 0 for item in value] if isinstance(value, list | tuple) else None
        )
    return _clamp(_BITS[kind], value)


def _clamp(bits: int, value: Any) -> int | None:
    try:
        return min(max(int(value), -(1 << bits)), (1 << bits) - 1)
    except (TypeError, ValueError, OverflowError):
        return None


def _decode(kind: Type, rows: int, buffers: Sequence[memoryview]) -> list[Value]:
    if kind in _TYPECODES:
        return list(array(_TYPECODES[kind], bytes(buffers[0])))
    if kind is Type.UTF8:
        return _slices(buffers[0], bytes(buffers[1]))
    if kind is Type.CATEGORY:
        dictionary = _slices(buffers[1], bytes(buffers[2]))
        indices = buffers[0].cast("i").tolist()
        if indices and min(indices) < 0:
            raise ValueError("negative index")
        return [dictionary[index] for index in indices]
    if kind is Type.INT32_LIST:
        ends = buffers[0].cast("i").tolist()
        items = buffers[1].cast("i").tolist()
        if ends != sorted(ends):
            raise ValueError("lists lie over each other")
        return [items[start:end] for start, end in pairwise(ends)]
    return list(_bits(buffers[0], rows))


def _slices(offsets: memoryview, data: bytes) -> list[Value]:
    ends = offsets.cast("i").tolist()
    if ends != sorted(ends):
        raise ValueError("texts lie over each other")
    return [data[start:end].decode("utf-8") for start, end in pairwise(ends)]
