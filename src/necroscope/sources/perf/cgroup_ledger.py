"""The cgroup ledger: every cgroup made, removed and released, by path. Removed and never released
is a zombie.

Tracepoints cgroup:cgroup_mkdir, cgroup_rmdir and cgroup_release (include/trace/events/cgroup.h),
written into the sampling rings.
"""

import struct
from pathlib import Path
from typing import Final

from necroscope.model.names import LINE_LIMIT, clean
from necroscope.model.reading import Row
from necroscope.sources.perf.tracefs import Tracepoint, read_tracepoints

_ACTIONS: Final = {
    "cgroup:cgroup_mkdir": "made",
    "cgroup:cgroup_rmdir": "removed",
    "cgroup:cgroup_release": "released",
}


class CgroupLedger:
    """Decodes the tracepoints' raw data by the offsets that this kernel's format files give."""

    def __init__(self, root: Path) -> None:
        tracepoints = read_tracepoints(tuple(_ACTIONS), root)
        self._actions = {
            tracepoint.id: (_ACTIONS[name], tracepoint) for name, tracepoint in tracepoints.items()
        }

    @property
    def tracepoint_ids(self) -> list[int]:
        return list(self._actions)

    def row(self, time_ns: int, tracepoint_id: int, raw: bytes) -> Row:
        action, tracepoint = self._actions[tracepoint_id]
        cgroup_id = _number(raw, tracepoint, "id")
        return (
            time_ns,
            action,
            _number(raw, tracepoint, "root"),
            cgroup_id,
            _number(raw, tracepoint, "level"),
            clean(_text(raw, tracepoint, "path"), LINE_LIMIT),
        )


def _number(raw: bytes, tracepoint: Tracepoint, name: str) -> int:
    field = tracepoint.fields[name]
    return int.from_bytes(raw[field.offset : field.offset + field.size], "little", signed=True)


def _text(raw: bytes, tracepoint: Tracepoint, name: str) -> bytes:
    """A `__data_loc` field holds the text's offset in its lower and its length in its upper
    half.
    """
    (location,) = struct.unpack_from("<I", raw, tracepoint.fields[name].offset)
    start, length = location & 0xFFFF, location >> 16
    return raw[start : start + length].rstrip(b"\0")
