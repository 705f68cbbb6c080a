"""What the page asks of a recording, and the answers: arrays for pictures, rows for lists."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from necroscope.model.frame import Frame
from necroscope.model.reading import Gap
from necroscope.store.core_modes import CoreModes
from necroscope.store.heatmap import Cell, HeatMap
from necroscope.store.last_rows import LastRows
from necroscope.store.query import RecordingInfo, Store

MEDIA_TYPE: Final = "application/x-necroscope"
_TYPES: Final = {"uint8": "u8", "int32": "i32", "uint32": "u32", "float32": "f32", "float64": "f64"}
MOST_GAPS: Final = 500
MOST_ROWS: Final = 5_000
NOT_RECORDED: Final = 255
NOT_READ_YET: Final = 254
_FULL: Final = 250
_PIXELS: Final = 2_000
CoreBytes = dict[str, NDArray[np.uint8]]
# The header and the arrays of an answer, before they are packed.
Parts = tuple[dict[str, Any], dict[str, NDArray[Any]]]
_KINDS: Final = {"kernel": 0, "user": 1, "jit": 2, "group": 3}
_OTHER_KIND: Final = 4
_LONG: Final = ("time", "end", "from", "to")


def pack_arrays(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays behind a JSON header, which a browser maps without parsing (web/src/lib/packed.ts):
    uint32 length, header, then the arrays, all padded to 8 bytes, little-endian.
    """
    described = [
        {"name": name, "type": _TYPES[array.dtype.name], "shape": list(array.shape)}
        for name, array in arrays.items()
    ]
    text = json.dumps({**header, "arrays": described}, separators=(",", ":")).encode()
    parts = [_pad(len(text).to_bytes(4, "little") + text)]
    parts += [
        _pad(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
        for array in arrays.values()
    ]
    return b"".join(parts)


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def recording_answer(
    info: RecordingInfo, cpus: Sequence[int], *, is_live: bool, version: str
) -> dict[str, Any]:
    return {
        "node": info.node,
        "labels": info.labels,
        "from": _digits(info.from_ns),
        "to": _digits(info.to_ns),
        "cpus": list(cpus),
        "live": is_live,
        "tables": info.tables,
        "bytes": info.bytes,
        "lost_samples": info.lost_samples,
        "pins": [
            {"from": str(pin.from_ns), "to": str(pin.to_ns), "reason": pin.reason}
            for pin in info.pins
        ],
        "generated": info.labels.get("generated") is not None,
        "version": version,
    }


def gaps_answer(store: Store, from_ns: int, to_ns: int) -> dict[str, Any]:
    """One by one where they can be drawn so; else joined where they lie closer than a pixel, and of
    those the longest.
    """
    shown = store.gaps(from_ns, to_ns)
    is_exact = len(shown) <= MOST_GAPS
    if not is_exact:
        shown = store.gaps(from_ns, to_ns, (to_ns - from_ns) // _PIXELS)
        shown.sort(key=lambda gap: (gap.cpu is None, gap.to_ns - gap.from_ns), reverse=True)
    cut = len(shown) - MOST_GAPS
    return {
        "gaps": [_gap(gap) for gap in shown[:MOST_GAPS]],
        "is_exact": is_exact,
        "left_out": [f"{cut} short gaps are not hatched"] if cut > 0 else [],
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "table": gap.table,
        "from": str(gap.from_ns),
        "to": str(gap.to_ns),
        "cause": gap.cause,
        "cpu": gap.cpu,
    }


def cores_answer(
    cores: CoreBytes,
    from_ns: int,
    column_ns: int,
    cpus: Sequence[int],
    left_out: Sequence[str] = (),
    *,
    is_complete: bool = True,
) -> bytes:
    header = {
        "from": str(from_ns),
        "column_ns": column_ns,
        "cpus": list(cpus),
        "left_out": list(left_out),
        "is_complete": is_complete,
    }
    return pack_arrays(header, cores)


def core_bytes(modes: CoreModes) -> CoreBytes:
    """A byte for each core and column: shares by 250ths, delays by eighths of a power of two of a
    microsecond.
    """
    arrays = {mode: _as_bytes(share) for mode, share in modes.worst.items()}
    arrays["delay"] = np.minimum(np.round(8 * np.log2(modes.delay_ns / 1000 + 1)), _FULL).astype(
        np.uint8
    )
    return arrays


def _as_bytes(share: NDArray[np.float32]) -> NDArray[np.uint8]:
    known = np.nan_to_num(share)
    return np.where(np.isnan(share), NOT_RECORDED, np.round(known * _FULL)).astype(np.uint8)


def heat_answer(heat: HeatMap) -> bytes:
    header = {
        "start": str(heat.start_ns),
        "column_ns": heat.column_ns,
        "samples": heat.samples,
        "busiest": _cell(heat.busiest),
        "quietest": _cell(heat.quietest),
        "left_out": heat.left_out,
    }
    return pack_arrays(
        header, {"weights": heat.weights.astype(np.uint32), "known": heat.is_known.astype(np.uint8)}
    )


def _cell(cell: Cell | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    return {
        "row": cell.row,
        "column": cell.column,
        "from": str(cell.from_ns),
        "to": str(cell.to_ns),
        "weight": cell.weight,
    }


def frame_names(frames: Sequence[Frame]) -> tuple[list[str], NDArray[np.uint8]]:
    """With the number of each frame's kind."""
    kinds = np.array([_KINDS.get(frame.kind, _OTHER_KIND) for frame in frames], np.uint8)
    return [frame.name for frame in frames], kinds


def rows_answer(last: LastRows) -> dict[str, Any]:
    """With moments as digits: a browser's numbers end at 2**53."""
    listed = [
        {name: str(value) if name in _LONG else value for name, value in row.items()}
        for row in last.rows.to_pylist()
    ]
    return {"rows": listed, "left_out": last.left_out}


def _digits(time_ns: int | None) -> str | None:
    return None if time_ns is None else str(time_ns)
