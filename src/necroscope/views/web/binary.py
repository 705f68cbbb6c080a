"""Arrays for the page: a JSON header and the raw numbers behind it, so that the browser maps them
without parsing.

uint32 length of the header, the header, zeros up to a multiple of 8, then the arrays, each padded
likewise; all little-endian.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MEDIA_TYPE: Final = "application/x-necroscope"
_TYPES: Final = {"uint8": "u8", "int32": "i32", "uint32": "u32", "float32": "f32", "float64": "f64"}


def packed(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    described = [
        {"name": name, "type": _TYPES[array.dtype.name], "shape": list(array.shape)}
        for name, array in arrays.items()
    ]
    text = json.dumps({**header, "arrays": described}, separators=(",", ":")).encode()
    parts = [_padded(len(text).to_bytes(4, "little") + text)]
    parts += [
        _padded(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
        for array in arrays.values()
    ]
    return b"".join(parts)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)
